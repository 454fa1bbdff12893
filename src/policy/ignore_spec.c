/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "policy/spec_fields.h"

/* One entry, before it is known what it is. */
struct entry {
        struct ignore_rule rule;
        char *pods, *namespaces;
        bool has_rule;
};

static void entry_done(struct entry *entry)
{
        free(entry->pods);
        free(entry->namespaces);
}

static int read_cidr(struct reader *reader, const struct value *value, void *userdata)
{
        struct entry *entry = userdata;

        entry->has_rule = true;
        return spec_read_prefix(reader, value, &entry->rule.prefix);
}

static int read_port(struct reader *reader, const struct value *value, void *userdata)
{
        struct entry *entry = userdata;
        uint64_t port;
        int r;

        entry->has_rule = true;
        r = reader_integer(reader, value, 1, UINT16_MAX, &port);
        if (r > 0)
                entry->rule.port = (uint16_t)port;
        return r;
}

static int read_pod_selector(struct reader *reader, const struct value *value, void *userdata)
{
        struct entry *entry = userdata;

        return spec_read_selector(reader, value, &entry->pods);
}

static int read_namespace_selector(struct reader *reader, const struct value *value, void *userdata)
{
        struct entry *entry = userdata;

        return spec_read_selector(reader, value, &entry->namespaces);
}

const struct field ignore_fields[] = {
        { .name = "cidr", .read = read_cidr },
        { .name = "port", .type = FIELD_INTEGER, .min = 1, .max = UINT16_MAX, .read = read_port },
        { .name = "podSelector",
          .type = FIELD_MAPPING,
          .place = FIELD_IN_CLUSTER,
          .elsewhere = "name the peers by cidr",
          .fields = selector_fields,
          .read = read_pod_selector },
        { .name = "namespaceSelector",
          .type = FIELD_MAPPING,
          .place = FIELD_IN_CLUSTER,
          .elsewhere = "name the peers by cidr",
          .fields = selector_fields,
          .read = read_namespace_selector },
        { 0 },
};

static int entry_check(struct reader *reader, const struct value *value, const struct entry *entry)
{
        bool has_selector = entry->pods || entry->namespaces;

        if (entry->has_rule && has_selector)
                return reader_problem(reader, value, "has selectors beside cidr or port; make two entries of it");
        if (entry->has_rule || has_selector)
                return 1;
        return reader_problem(reader, value, "would ignore everybody; give %s",
                              reader->cluster ? "podSelector, namespaceSelector, cidr or port" : "cidr, port or both");
}

static int entry_keep(struct policy *policy, struct entry *entry)
{
        struct pod_selector *selector = &policy->cluster.ignore[policy->cluster.n_ignore];

        if (entry->has_rule) {
                policy->ignore[policy->n_ignore++] = entry->rule;
                return 1;
        }

        if (!entry->pods)
                entry->pods = strdup("");
        if (!entry->pods)
                return -ENOMEM;
        selector->pods = TAKE_PTR(entry->pods);
        selector->namespaces = TAKE_PTR(entry->namespaces);
        policy->cluster.n_ignore++;
        return 1;
}

static int read_entry(struct reader *reader, const struct value *value, struct policy *policy)
{
        _cleanup_(entry_done) struct entry entry = { 0 };
        size_t found = reader->problems->n_found;
        int r;

        r = reader_mapping(reader, value, ignore_fields, &entry);
        if (r <= 0 || found != reader->problems->n_found)
                return r;
        r = entry_check(reader, value, &entry);
        if (r <= 0)
                return r;
        return entry_keep(policy, &entry);
}

int spec_read_ignore(struct reader *reader, const struct value *value, void *userdata)
{
        struct policy *policy = userdata;
        size_t n;
        int r;

        r = reader_list(reader, value, POLICY_RULES_MAX, &n);
        if (r <= 0)
                return r;

        policy->ignore = calloc(n ? n : 1, sizeof(*policy->ignore));
        policy->cluster.ignore = calloc(n ? n : 1, sizeof(*policy->cluster.ignore));
        if (!policy->ignore || !policy->cluster.ignore)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                struct value item = reader_item(reader, value, i);

                r = read_entry(reader, &item, policy);
                if (r < 0)
                        return r;
        }
        return 1;
}
