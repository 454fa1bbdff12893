/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/time.h"
#include "policy/spec_fields.h"

static const char *const silences[] = {
        [SILENCE_IGNORE] = "Ignore",
        [SILENCE_HOLD] = "Hold",
        NULL,
};

static const char *const gpu_reactions[] = {
        [GPU_ON_IDLE_REPORT] = "Report",
        [GPU_ON_IDLE_SLEEP] = "Sleep",
        NULL,
};

/* "250m", "0.25", "2": cores with at most three decimals, or thousandths. */
static int cpu_parse(const char *text, uint32_t *ret_millicores)
{
        size_t whole = strspn(text, "0123456789"), decimals = 0;
        const char *rest = text + whole;
        unsigned long millicores;

        if (whole == 0 || whole > 6)
                return -EINVAL;
        millicores = strtoul(text, NULL, 10);
        if (strcmp(rest, "m") == 0) {
                *ret_millicores = (uint32_t)millicores;
                return 0;
        }

        millicores *= 1000;
        if (*rest == '.') {
                decimals = strspn(++rest, "0123456789");
                for (size_t i = 0, weight = 100; i < decimals; i++, weight /= 10)
                        millicores += weight * (unsigned long)(rest[i] - '0');
                if (decimals == 0 || decimals > 3)
                        return -EINVAL;
        }
        if (rest[decimals])
                return -EINVAL;

        *ret_millicores = (uint32_t)millicores;
        return 0;
}

static int read_cpu(struct reader *reader, const struct value *value, void *userdata)
{
        struct policy *policy = userdata;
        const char *text;
        int r;

        r = reader_text(reader, value, &text);
        if (r <= 0)
                return r;
        if (cpu_parse(text, &policy->idle.cpu_millicores) < 0)
                return reader_refuse(reader, value, "is not an amount of CPU; write it like 250m or 0.25, and 0 for no limit");
        return 1;
}

static const struct field gpu_fields[] = {
        { .name = "after",
          .type = FIELD_DURATION,
          .min = NSEC_PER_SEC,
          .max = SPEC_LONGEST_NS,
          FIELD_OF(struct policy, idle.gpu.after_ns) },
        { .name = "onIdle", .type = FIELD_WORD, .words = gpu_reactions, FIELD_OF(struct policy, idle.gpu.on_idle) },
        { 0 },
};

const struct field idle_fields[] = {
        { .name = "after",
          .type = FIELD_DURATION,
          .min = NSEC_PER_MSEC,
          .max = SPEC_LONGEST_NS,
          FIELD_OF(struct policy, idle.after_ns) },
        { .name = "requestTimeout",
          .type = FIELD_DURATION,
          .min = NSEC_PER_MSEC,
          .max = SPEC_LONGEST_NS,
          FIELD_OF(struct policy, idle.request_timeout_ns) },
        { .name = "connections", .type = FIELD_WORD, .words = silences, FIELD_OF(struct policy, idle.connections) },
        { .name = "outbound", .type = FIELD_WORD, .words = silences, FIELD_OF(struct policy, idle.outbound) },
        { .name = "cpu", .read = read_cpu },
        { .name = "minAwake", .type = FIELD_DURATION, .max = SPEC_LONGEST_NS, FIELD_OF(struct policy, idle.min_awake_ns) },
        { .name = "gpu", .type = FIELD_MAPPING, .fields = gpu_fields },
        { 0 },
};
