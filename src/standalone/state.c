/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/time.h"
#include "standalone/managed.h"

enum { STATE_VERSION = 1 };

static int state_path(const struct managed *managed, char **ret_path)
{
        return asprintf(ret_path, "%s/%s.json", managed->context->state_dir, managed->policy->name) < 0 ? -ENOMEM : 0;
}

/* Monotonic times mean nothing after a reboot. */
static void boot_id(char buffer[static 64])
{
        FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

        buffer[0] = '\0';
        if (!file)
                return;
        if (fgets(buffer, 64, file))
                buffer[strcspn(buffer, "\n")] = '\0';
        fclose(file);
}

void managed_save_state(struct managed *managed)
{
        _cleanup_(freep) char *path = NULL, *temporary = NULL;
        char boot[64];
        json_t *state;
        int r = 0;

        if (state_path(managed, &path) < 0 || asprintf(&temporary, "%s.new", path) < 0) {
                temporary = NULL;
                return;
        }

        boot_id(boot);
        state = json_pack("{si, ss, ss, sI, sI, si, so, so}", "version", STATE_VERSION, "boot", boot, "phase",
                          phase_to_string(managed->machine.phase), "since_monotonic_ns", (json_int_t)managed->machine.since_ns,
                          "since_realtime_ns", (json_int_t)managed->since_realtime_ns, "idle_factor", (int)managed->idle_factor,
                          "last_wake", record_or_earlier(wake_record_json(&managed->wake), managed->earlier_wake), "last_sleep",
                          record_or_earlier(sleep_record_json(&managed->sleep), managed->earlier_sleep));
        if (!state || json_dump_file(state, temporary, JSON_INDENT(1)) < 0)
                r = -EIO;
        else if (rename(temporary, path) < 0)
                r = -errno;
        json_decref(state);
        if (r < 0)
                log_warning("policy \"%s\": cannot write %s: %s", managed->policy->name, path, strerror(-r));
}

void managed_forget_state(struct managed *managed)
{
        _cleanup_(freep) char *path = NULL;

        if (state_path(managed, &path) >= 0)
                unlink(path);
}

static json_t *object_or_null(json_t *state, const char *name)
{
        json_t *object = json_object_get(state, name);

        return json_is_object(object) ? json_incref(object) : NULL;
}

static bool same_boot(const json_t *state)
{
        const char *saved = json_string_value(json_object_get(state, "boot"));
        char now[64];

        boot_id(now);
        return saved && strcmp(saved, now) == 0;
}

static void read_phase(const json_t *state, struct saved_phase *ret_saved)
{
        const char *name = json_string_value(json_object_get(state, "phase"));
        enum phase phase;

        if (!same_boot(state) || !name || phase_from_string(name, &phase) < 0)
                return;
        *ret_saved = (struct saved_phase){
                .phase = phase,
                .since_ns = (uint64_t)json_integer_value(json_object_get(state, "since_monotonic_ns")),
                .since_realtime_ns = (uint64_t)json_integer_value(json_object_get(state, "since_realtime_ns")),
        };
}

int managed_load_state(struct managed *managed, struct saved_phase *ret_saved)
{
        _cleanup_(freep) char *path = NULL;
        json_int_t factor;
        json_t *state;
        int r;

        r = state_path(managed, &path);
        if (r < 0)
                return r;
        if (access(path, F_OK) < 0)
                return -errno;
        state = json_load_file(path, 0, NULL);
        if (!state)
                return -EBADMSG;
        if (json_integer_value(json_object_get(state, "version")) != STATE_VERSION) {
                json_decref(state);
                return -EPROTO;
        }

        factor = json_integer_value(json_object_get(state, "idle_factor"));
        if (factor >= 1 && factor <= FLAPPING_FACTOR_MAX)
                managed->idle_factor = (unsigned)factor;
        managed->earlier_wake = object_or_null(state, "last_wake");
        managed->earlier_sleep = object_or_null(state, "last_sleep");

        read_phase(state, ret_saved);
        json_decref(state);
        return 0;
}
