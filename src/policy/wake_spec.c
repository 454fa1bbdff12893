/* SPDX-License-Identifier: Apache-2.0 */
#include "base/time.h"
#include "policy/spec_fields.h"

static const char *const readiness_sources[] = {
        [READINESS_PROBE] = "Probe",
        [READINESS_READY] = "Ready",
        NULL,
};

int spec_read_prefix(struct reader *reader, const struct value *value, struct prefix *ret_prefix)
{
        const char *text;
        int r;

        r = reader_text(reader, value, &text);
        if (r <= 0)
                return r;

        r = prefix_parse(text, ret_prefix);
        if (r == -ERANGE)
                return reader_refuse(reader, value,
                                     "has bits set past its prefix length; write the network's own address, like 10.0.0.0/8");
        if (r < 0)
                return reader_refuse(reader, value, "is not a network; write it like 10.0.0.0/8 or \"2001:db8::/32\"");
        return 1;
}

static int read_from(struct reader *reader, const struct value *value, void *userdata)
{
        struct wake_settings *wake = &((struct policy *)userdata)->wake;
        size_t n;
        int r;

        r = reader_list(reader, value, POLICY_RULES_MAX, &n);
        if (r <= 0)
                return r;
        if (n == 0)
                return reader_problem(reader, value, "is empty; name who may wake it, or leave the field out for everybody");

        wake->from = calloc(n, sizeof(*wake->from));
        if (!wake->from)
                return -ENOMEM;
        wake->n_from = n;
        for (size_t i = 0; i < n; i++) {
                struct value item = reader_item(reader, value, i);

                r = spec_read_prefix(reader, &item, &wake->from[i]);
                if (r < 0)
                        return r;
        }
        return 1;
}

const struct field wake_fields[] = {
        { .name = "holdTimeout",
          .type = FIELD_DURATION,
          .min = NSEC_PER_SEC,
          .max = 600 * NSEC_PER_SEC,
          FIELD_OF(struct policy, wake.hold_timeout_ns) },
        { .name = "maxHeld", .type = FIELD_INTEGER, .min = 1, .max = 4096, FIELD_OF(struct policy, wake.max_held) },
        { .name = "from", .type = FIELD_LIST, .max = POLICY_RULES_MAX, .read = read_from },
        { .name = "replicas",
          .type = FIELD_INTEGER,
          .place = FIELD_IN_CLUSTER,
          .elsewhere = "a target is one process: leave it out",
          .min = 1,
          .max = 100000,
          FIELD_OF(struct policy, cluster.replicas) },
        { .name = "parking",
          .type = FIELD_BOOLEAN,
          .place = FIELD_IN_CLUSTER,
          .elsewhere = "packets are held without it: leave it out",
          FIELD_OF(struct policy, cluster.parking) },
        { .name = "readiness",
          .type = FIELD_WORD,
          .place = FIELD_IN_CLUSTER,
          .elsewhere = "a target is ready when it listens: leave it out",
          .words = readiness_sources,
          FIELD_OF(struct policy, cluster.readiness) },
        { 0 },
};
