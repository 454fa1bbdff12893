/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/describe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "base/log.h"
#include "base/macros.h"
#include "base/time.h"

static int forward_message(enum libbpf_print_level level, const char *format, va_list arguments)
{
        char message[1024];
        size_t length;

        if (level == LIBBPF_DEBUG)
                return 0;

        vsnprintf(message, sizeof(message), format, arguments);
        length = strcspn(message, "\n");
        log_debug("%.*s", (int)length, message);
        return 0;
}

void libbpf_log_to_debug(void)
{
        libbpf_set_print(forward_message);
}

json_t *program_describe(int fd, const char *type, const char *attach, bool attached)
{
        struct bpf_prog_info info = {};
        __u32 length = sizeof(info);

        if (bpf_obj_get_info_by_fd(fd, &info, &length) < 0)
                return NULL;

        return json_pack("{s:s, s:s, s:s, s:b, s:I, s:I, s:f}", "name", info.name, "type", type, "attach", attach, "attached",
                         attached, "id", (json_int_t)info.id, "run_count", (json_int_t)info.run_cnt, "run_time_seconds",
                         (double)info.run_time_ns / NSEC_PER_SEC);
}

/* Counted one by one, at most max_entries of them: entries that come and go meanwhile may be counted or not. */
static json_int_t count_entries(int fd, const struct bpf_map_info *info)
{
        _cleanup_(freep) void *key = calloc(1, info->key_size);
        json_int_t entries = 0;

        if (!key)
                return 0;

        while (entries < info->max_entries && bpf_map_get_next_key(fd, entries ? key : NULL, key) == 0)
                entries++;
        return entries;
}

json_t *map_describe(int fd)
{
        struct bpf_map_info info = {};
        __u32 length = sizeof(info);
        const char *type;
        json_t *entries;

        if (bpf_obj_get_info_by_fd(fd, &info, &length) < 0)
                return NULL;

        type = libbpf_bpf_map_type_str(info.type);
        entries = info.type == BPF_MAP_TYPE_RINGBUF ? json_null() : json_integer(count_entries(fd, &info));
        return json_pack("{s:s, s:s, s:o, s:I}", "name", info.name, "type", type ? type : "unknown", "entries", entries,
                         "max_entries", (json_int_t)info.max_entries);
}
