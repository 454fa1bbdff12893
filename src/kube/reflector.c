/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/reflector.h"

#include <string.h>

#include "base/time.h"
#include "kube/chance.h"
#include "kube/reflector_private.h"

enum { TIMER_ACCURACY_US = 1000 };

static int timer_set(sd_event_source *timer, uint64_t delay_ns)
{
        int r = sd_event_source_set_time_relative(timer, delay_ns / NSEC_PER_USEC);

        return r < 0 ? r : sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

static void set_stale(struct kube_reflector *reflector, bool stale)
{
        if (reflector->stale == stale)
                return;
        reflector->stale = stale;
        if (reflector->callbacks.stale)
                reflector->callbacks.stale(stale, reflector->userdata);
}

static void tell_broken(struct kube_reflector *reflector, bool broken)
{
        if (reflector->callbacks.broken)
                reflector->callbacks.broken(broken, reflector->userdata);
}

static void watch_is_open(struct kube_reflector *reflector)
{
        bool was_broken = reflector->problem[0] != '\0';

        reflector->watching = true;
        reflector->heard_ns = reflector->sources.now_ns();
        reflector->problem[0] = '\0';
        reflector->counters.watch_restarts += reflector->counters.watches > 0;
        reflector->counters.watches++;
        sd_event_source_set_enabled(reflector->stale_timer, SD_EVENT_OFF);
        set_stale(reflector, false);
        if (was_broken)
                tell_broken(reflector, false);
}

/* In good order, the server has been heard of just now; else only when the last byte came. */
static void watch_is_over(struct kube_reflector *reflector, bool in_order)
{
        uint64_t silent_ns;

        if (!reflector->watching)
                return;
        reflector->watching = false;
        if (in_order)
                reflector->heard_ns = reflector->sources.now_ns();
        silent_ns = reflector->sources.now_ns() - reflector->heard_ns;
        timer_set(reflector->stale_timer, silent_ns < REFLECTOR_STALE_AFTER_NS ? REFLECTOR_STALE_AFTER_NS - silent_ns : 0);
}

static int on_stale(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct kube_reflector *reflector = userdata;

        if (!reflector->watching)
                set_stale(reflector, true);
        return 0;
}

static void step_begin(struct kube_reflector *reflector)
{
        timer_set(reflector->next_timer, reflector->step.delay_ns);
}

static void outcome_take(struct kube_reflector *reflector, struct reflector_outcome *outcome)
{
        uint64_t now_ns = reflector->sources.now_ns();

        outcome->lasted_ns = now_ns - reflector->begun_ns;
        outcome->events = reflector->events;
        outcome->continued = reflector->continue_token != NULL;
        if (outcome->end != REFLECTOR_SYNCED) {
                free(reflector->continue_token);
                reflector->continue_token = NULL;
        }
        reflector_policy_next(&reflector->policy, outcome, now_ns, reflector->sources.chance(), &reflector->step);
}

static void sync_count(struct kube_reflector *reflector)
{
        reflector->counters.relists += reflector->counters.lists > 0;
        reflector->counters.lists++;
        reflector->synced = true;
        if (reflector->callbacks.synced)
                reflector->callbacks.synced(reflector->userdata);
}

void reflector_synced(struct kube_reflector *reflector)
{
        outcome_take(reflector, &(struct reflector_outcome){ .end = REFLECTOR_SYNCED });
        kube_request_is_watch(reflector->request, REFLECTOR_SILENCE_NS);
        sync_count(reflector);
        watch_is_open(reflector);
        reflector->begun_ns = reflector->heard_ns;
        reflector->events = 0;
}

static const char *step_text(const struct kube_reflector *reflector)
{
        return reflector->policy.current.action == REFLECTOR_LIST ? "list" : "watch";
}

static void failure_note(struct kube_reflector *reflector, const struct kube_reply *reply, const struct kube_status *status)
{
        reflector->counters.failures++;
        if (reply->error == 0 || reflector->error_event)
                snprintf(reflector->problem, sizeof(reflector->problem), "%s %s: %u %s: %s", step_text(reflector),
                         reflector->resource, status->code, status->reason, status->message);
        else
                snprintf(reflector->problem, sizeof(reflector->problem), "%s %s: %s", step_text(reflector), reflector->resource,
                         *reply->status.message ? reply->status.message : strerror(-reply->error));
}

static void on_failure(struct kube_reflector *reflector, const struct kube_reply *reply)
{
        struct reflector_outcome outcome = { .end = REFLECTOR_REFUSED };
        bool was_broken;

        if (reflector->error_event) {
                outcome.end = REFLECTOR_STATUS;
                outcome.in_stream = true;
                outcome.status = *reflector->error_event;
        } else if (reply->error == 0) {
                outcome.end = REFLECTOR_STATUS;
                outcome.status = reply->status;
        } else if (reflector->opened) {
                outcome.end = REFLECTOR_BROKEN;
        }
        was_broken = reflector->problem[0] != '\0';
        failure_note(reflector, reply, &outcome.status);
        if (!was_broken)
                tell_broken(reflector, true);
        watch_is_over(reflector, false);
        outcome_take(reflector, &outcome);
        reflector->awaits_server = outcome.end == REFLECTOR_REFUSED;
        step_begin(reflector);
}

static void on_reachable(void *userdata)
{
        struct kube_reflector *reflector = userdata;

        if (!reflector->awaits_server)
                return;
        reflector->awaits_server = false;
        reflector_policy_reachable(&reflector->policy, reflector->sources.chance(), &reflector->step);
        step_begin(reflector);
}

static void list_done(struct kube_reflector *reflector, const struct kube_reply *reply)
{
        struct kube_reply broken = { .error = 0 };
        struct kube_list_head head = { 0 };

        broken.error = kube_list_end(reflector->list, &head);
        if (broken.error >= 0 && head.continue_token) {
                free(reflector->continue_token);
                reflector->continue_token = strdup(head.continue_token);
                reflector->step.delay_ns = 0;
                broken.error = reflector->continue_token ? 0 : -ENOMEM;
                if (broken.error >= 0) {
                        step_begin(reflector);
                        return;
                }
        }
        if (broken.error >= 0)
                broken.error = view_swap(reflector, head.resource_version);
        if (broken.error < 0) {
                on_failure(reflector, &broken);
                return;
        }
        free(reflector->continue_token);
        reflector->continue_token = NULL;
        outcome_take(reflector, &(struct reflector_outcome){ .end = REFLECTOR_SYNCED });
        reflector->heard_ns = reflector->sources.now_ns();
        sync_count(reflector);
        step_begin(reflector);
}

static void watch_done(struct kube_reflector *reflector)
{
        struct kube_reply broken = { .error = kube_stream_end(reflector->stream) };

        if (broken.error < 0) {
                on_failure(reflector, &broken);
                return;
        }
        watch_is_over(reflector, true);
        outcome_take(reflector, &(struct reflector_outcome){ .end = REFLECTOR_CLOSED });
        step_begin(reflector);
}

static void on_opened(void *userdata)
{
        struct kube_reflector *reflector = userdata;

        reflector->opened = true;
        reflector->heard_ns = reflector->sources.now_ns();
        if (reflector->step.action == REFLECTOR_WATCH)
                watch_is_open(reflector);
}

static int on_data(const char *data, size_t length, void *userdata)
{
        struct kube_reflector *reflector = userdata;

        reflector->heard_ns = reflector->sources.now_ns();
        if (reflector->list)
                return kube_list_feed(reflector->list, data, length);
        return kube_stream_feed(reflector->stream, data, length);
}

static void on_done(const struct kube_reply *reply, void *userdata)
{
        struct kube_reflector *reflector = userdata;

        reflector->request = NULL;
        if (!kube_reply_is_ok(reply) || reflector->error_event)
                on_failure(reflector, reply);
        else if (reflector->list)
                list_done(reflector, reply);
        else
                watch_done(reflector);
}

static int on_next(sd_event_source *source, uint64_t usec, void *userdata)
{
        static const struct kube_request_callbacks callbacks = { .opened = on_opened, .data = on_data, .done = on_done };
        struct kube_reflector *reflector = userdata;
        struct kube_reply failed;

        reflector->awaits_server = false;
        failed = (struct kube_reply){ .error = reflector_request(reflector, &callbacks) };
        if (failed.error < 0)
                on_failure(reflector, &failed);
        return 0;
}

static int text_copy(const char *text, char **ret_copy)
{
        *ret_copy = text ? strdup(text) : NULL;
        return text && !*ret_copy ? -ENOMEM : 0;
}

static int settings_copy(struct kube_reflector *reflector, const struct kube_reflector_settings *settings)
{
        int r = text_copy(settings->resource, &reflector->resource);

        if (r >= 0)
                r = text_copy(settings->path, &reflector->path);
        if (r >= 0)
                r = text_copy(settings->field_selector, &reflector->field_selector);
        if (r >= 0)
                r = text_copy(settings->label_selector, &reflector->label_selector);
        if (r >= 0)
                r = text_copy("", &reflector->version);
        return r;
}

static int timers_new(struct kube_reflector *reflector, sd_event *event)
{
        int r = sd_event_add_time_relative(event, &reflector->next_timer, CLOCK_MONOTONIC, 0, TIMER_ACCURACY_US, on_next,
                                           reflector);

        if (r >= 0)
                r = sd_event_add_time_relative(event, &reflector->stale_timer, CLOCK_MONOTONIC, 0, TIMER_ACCURACY_US, on_stale,
                                               reflector);
        if (r >= 0)
                r = sd_event_source_set_enabled(reflector->stale_timer, SD_EVENT_OFF);
        return r;
}

int kube_reflector_new(struct kube_client *client, const struct kube_reflector_settings *settings,
                       const struct kube_reflector_callbacks *callbacks, void *userdata,
                       const struct kube_reflector_sources *sources, struct kube_reflector **ret_reflector)
{
        _cleanup_(kube_reflector_freep) struct kube_reflector *reflector = calloc(1, sizeof(*reflector));
        int r;

        if (!reflector)
                return -ENOMEM;
        reflector->client = client;
        reflector->callbacks = *callbacks;
        reflector->userdata = userdata;
        reflector->sources = sources ? *sources : (struct kube_reflector_sources){ now_monotonic_ns, kube_chance };
        reflector->stale = true;
        reflector->view = reflector->pending = (struct store){ .release = callbacks->release, .userdata = userdata };
        reflector->listener = (struct kube_listener){ .reachable = on_reachable, .userdata = reflector };
        kube_client_listen(client, &reflector->listener);
        reflector_policy_init(&reflector->policy, !settings->without_watch_list, &reflector->step);

        r = settings_copy(reflector, settings);
        if (r >= 0)
                r = timers_new(reflector, kube_client_event(client));
        if (r < 0)
                return r;
        *ret_reflector = TAKE_PTR(reflector);
        return 0;
}

struct kube_reflector *kube_reflector_free(struct kube_reflector *reflector)
{
        if (!reflector)
                return NULL;
        kube_request_cancel(reflector->request);
        kube_client_unlisten(reflector->client, &reflector->listener);
        sd_event_source_disable_unref(reflector->next_timer);
        sd_event_source_disable_unref(reflector->stale_timer);
        kube_list_free(reflector->list);
        kube_stream_free(reflector->stream);
        store_clear(&reflector->view);
        store_clear(&reflector->pending);
        free(reflector->resource);
        free(reflector->path);
        free(reflector->field_selector);
        free(reflector->label_selector);
        free(reflector->version);
        free(reflector->continue_token);
        free(reflector);
        return NULL;
}

void *kube_reflector_get(const struct kube_reflector *reflector, const char *key)
{
        const struct store_entry *entry = store_find(&reflector->view, key);

        return entry ? entry->value : NULL;
}

size_t kube_reflector_count(const struct kube_reflector *reflector)
{
        return store_count(&reflector->view);
}

int kube_reflector_each(const struct kube_reflector *reflector, int (*each)(const char *key, void *value, void *userdata),
                        void *userdata)
{
        struct store_entry *entry, *next;

        HASH_ITER(hh, reflector->view.entries, entry, next) {
                int r = each(entry->key, entry->value, userdata);

                if (r < 0)
                        return r;
        }
        return 0;
}

bool kube_reflector_is_synced(const struct kube_reflector *reflector)
{
        return reflector->synced;
}

bool kube_reflector_is_stale(const struct kube_reflector *reflector)
{
        return reflector->stale;
}

uint64_t kube_reflector_staleness_ns(const struct kube_reflector *reflector)
{
        return reflector->synced ? reflector->sources.now_ns() - reflector->heard_ns : UINT64_MAX;
}

const char *kube_reflector_version(const struct kube_reflector *reflector)
{
        return reflector->version;
}

const char *kube_reflector_problem(const struct kube_reflector *reflector)
{
        return reflector->problem;
}

const struct kube_reflector_counters *kube_reflector_counters(const struct kube_reflector *reflector)
{
        return &reflector->counters;
}
