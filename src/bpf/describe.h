/* SPDX-License-Identifier: Apache-2.0 */
/* Programs and maps described for people, and libbpf's own messages sent to our debug log. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* From now on, for the whole process. */
void libbpf_log_to_debug(void);

/* {name, type, attach, attached, id, run_count, run_time_seconds}; the last two stay 0 unless sysctl kernel.bpf_stats_enabled is set.
 * NULL when the kernel does not say. The caller owns the JSON. */
json_t *program_describe(int fd, const char *type, const char *attach, bool attached);

/* {name, type, entries, max_entries}; of a ring buffer, max_entries are bytes, and entries is null. */
json_t *map_describe(int fd);
