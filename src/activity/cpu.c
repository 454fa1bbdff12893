/* SPDX-License-Identifier: Apache-2.0 */
#include "activity/cpu.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/time.h"

static const struct cpu_sample *sample_at(const struct cpu_history *history, unsigned age)
{
        return &history->samples[(history->newest + CPU_SAMPLES - age) % CPU_SAMPLES];
}

static const struct cpu_sample *find_base(const struct cpu_history *history, uint64_t window_ns, uint64_t now_ns)
{
        for (unsigned age = 0; age < history->n; age++)
                if (now_ns - sample_at(history, age)->ns >= window_ns)
                        return sample_at(history, age);
        return history->n ? sample_at(history, history->n - 1) : NULL;
}

static void keep_sample(struct cpu_history *history, const struct cpu_sample *sample)
{
        if (history->n && sample->ns - sample_at(history, 0)->ns < CPU_SAMPLE_SECONDS * NSEC_PER_SEC)
                return;
        history->newest = (history->newest + 1) % CPU_SAMPLES;
        history->samples[history->newest] = *sample;
        if (history->n < CPU_SAMPLES)
                history->n++;
}

void cpu_history_add(struct cpu_history *history, uint64_t usage_usec, uint64_t after_ns, uint64_t now_ns, uint32_t *ret_millicores,
                     uint64_t *ret_window_ns)
{
        struct cpu_sample sample = { .ns = now_ns, .usage_usec = usage_usec };
        uint64_t longest_ns = MIN(after_ns, CPU_WINDOW_SECONDS * NSEC_PER_SEC);
        const struct cpu_sample *base = find_base(history, MAX(longest_ns, CPU_SAMPLE_SECONDS * NSEC_PER_SEC), now_ns);
        uint64_t used_usec = 0, elapsed_ns = 0;

        if (base) {
                elapsed_ns = now_ns - base->ns;
                used_usec = usage_usec > base->usage_usec ? usage_usec - base->usage_usec : 0;
        }
        *ret_window_ns = elapsed_ns;
        *ret_millicores = elapsed_ns ? (uint32_t)(used_usec * NSEC_PER_USEC * 1000 / elapsed_ns) : 0;
        keep_sample(history, &sample);
}

int cpu_read_usage(int cgroup_fd, uint64_t *ret_usage_usec)
{
        _cleanup_(close_fdp) int fd = openat(cgroup_fd, "cpu.stat", O_RDONLY | O_CLOEXEC);
        char text[2048];
        const char *line;
        uint64_t usage;
        ssize_t length;

        if (fd < 0)
                return -errno;
        length = read(fd, text, sizeof(text) - 1);
        if (length < 0)
                return -errno;
        text[length] = '\0';

        line = strstr(text, "usage_usec ");
        if (!line || sscanf(line, "usage_usec %" SCNu64, &usage) != 1)
                return -ENODATA;
        *ret_usage_usec = usage;
        return 0;
}
