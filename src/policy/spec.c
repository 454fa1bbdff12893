/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/spec.h"

#include <string.h>

#include "base/time.h"
#include "policy/target_spec.h"

static const uint64_t longest_ns = 8760 * 3600 * NSEC_PER_SEC; /* a year: sums and multiples of it fit in 64 bits */

static int read_checked(struct reader *reader, const struct value *value, void *userdata)
{
        return 1; /* by document_is_policy(), before everything else */
}

static bool is_dns_label(const char *text)
{
        size_t length = strlen(text);

        return length >= 1 && length <= POLICY_NAME_MAX && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == length &&
               text[0] != '-' && text[length - 1] != '-';
}

static int read_name(struct reader *reader, const struct value *value, void *userdata)
{
        struct policy *policy = userdata;
        const char *text;
        int r;

        r = reader_text(reader, value, &text);
        if (r <= 0)
                return r;
        if (!is_dns_label(text))
                return reader_refuse(
                        reader, value,
                        "is not a name for a policy; use lower-case letters, digits and \"-\" between them, %d at most",
                        POLICY_NAME_MAX);

        policy->name = strdup(text);
        return policy->name ? 1 : -ENOMEM;
}

static int read_annotations(struct reader *reader, const struct value *value, void *userdata)
{
        if (value->node->type != YAML_MAPPING_NODE)
                return reader_refuse(reader, value, "is not a mapping; write it as NAME: VALUE");
        return 1;
}

static int read_metadata(struct reader *reader, const struct value *value, void *userdata)
{
        static const struct field fields[] = {
                { .name = "name", .read = read_name, .required = "every policy needs a name of its own" },
                { .name = "labels", .read = read_annotations },
                { .name = "annotations", .read = read_annotations },
                { .name = "namespace", .kubernetes = "policies have no namespace: leave it out" },
        };

        return reader_mapping(reader, value, fields, ELEMENTSOF(fields), userdata);
}

static int read_frontend(struct reader *reader, const struct value *value, struct policy *policy)
{
        struct frontend *frontend = &policy->frontends[policy->n_frontends];
        const char *text;
        int r;

        r = reader_text(reader, value, &text);
        if (r <= 0)
                return r;

        r = frontend_parse(text, frontend);
        if (r == -EPROTONOSUPPORT)
                return reader_refuse(reader, value, "has no protocol that can be held; write tcp/ADDRESS:PORT or udp/ADDRESS:PORT");
        if (r < 0)
                return reader_refuse(reader, value, "is not a frontend; write it like \"tcp/0.0.0.0:8080\" or \"udp/[::]:5353\"");

        for (size_t i = 0; i < policy->n_frontends; i++)
                if (frontend_equal(&policy->frontends[i], frontend))
                        return reader_refuse(reader, value, "is given twice; remove one of the two");

        policy->n_frontends++;
        return 1;
}

static int read_listen(struct reader *reader, const struct value *value, void *userdata)
{
        struct policy *policy = userdata;
        size_t n;
        int r;

        r = reader_list(reader, value, POLICY_FRONTENDS_MAX, &n);
        if (r <= 0)
                return r;
        if (n == 0)
                return reader_problem(reader, value, "is empty; name at least one frontend, like [tcp/0.0.0.0:8080]");

        policy->frontends = calloc(n, sizeof(*policy->frontends));
        if (!policy->frontends)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                struct value item = reader_item(reader, value, i);

                r = read_frontend(reader, &item, policy);
                if (r < 0)
                        return r;
        }
        return 1;
}

static int read_silence(struct reader *reader, const struct value *value, enum silence *ret_silence)
{
        const char *text;
        int r;

        r = reader_text(reader, value, &text);
        if (r <= 0)
                return r;

        if (strcmp(text, "Ignore") == 0)
                *ret_silence = SILENCE_IGNORE;
        else if (strcmp(text, "Hold") == 0)
                *ret_silence = SILENCE_HOLD;
        else
                return reader_refuse(reader, value, "is neither Ignore nor Hold");
        return 1;
}

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

static int read_after(struct reader *reader, const struct value *value, void *userdata)
{
        struct policy *policy = userdata;

        return reader_duration(reader, value, NSEC_PER_MSEC, longest_ns, &policy->idle.after_ns);
}

static int read_request_timeout(struct reader *reader, const struct value *value, void *userdata)
{
        struct policy *policy = userdata;

        return reader_duration(reader, value, NSEC_PER_MSEC, longest_ns, &policy->idle.request_timeout_ns);
}

static int read_min_awake(struct reader *reader, const struct value *value, void *userdata)
{
        struct policy *policy = userdata;

        return reader_duration(reader, value, 0, longest_ns, &policy->idle.min_awake_ns);
}

static int read_connections(struct reader *reader, const struct value *value, void *userdata)
{
        struct policy *policy = userdata;

        return read_silence(reader, value, &policy->idle.connections);
}

static int read_outbound(struct reader *reader, const struct value *value, void *userdata)
{
        struct policy *policy = userdata;

        return read_silence(reader, value, &policy->idle.outbound);
}

static int read_idle(struct reader *reader, const struct value *value, void *userdata)
{
        static const struct field fields[] = {
                { .name = "after", .read = read_after },
                { .name = "requestTimeout", .read = read_request_timeout },
                { .name = "connections", .read = read_connections },
                { .name = "outbound", .read = read_outbound },
                { .name = "cpu", .read = read_cpu },
                { .name = "minAwake", .read = read_min_awake },
                { .name = "gpu", .kubernetes = "the use of GPUs is not watched: leave it out" },
        };

        return reader_mapping(reader, value, fields, ELEMENTSOF(fields), userdata);
}

static int read_hold_timeout(struct reader *reader, const struct value *value, void *userdata)
{
        struct policy *policy = userdata;

        return reader_duration(reader, value, NSEC_PER_SEC, 600 * NSEC_PER_SEC, &policy->wake.hold_timeout_ns);
}

static int read_max_held(struct reader *reader, const struct value *value, void *userdata)
{
        struct policy *policy = userdata;
        uint64_t max_held;
        int r;

        r = reader_integer(reader, value, 1, 4096, &max_held);
        if (r > 0)
                policy->wake.max_held = (uint32_t)max_held;
        return r;
}

static int read_prefix(struct reader *reader, const struct value *value, struct prefix *ret_prefix)
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

                r = read_prefix(reader, &item, &wake->from[i]);
                if (r < 0)
                        return r;
        }
        return 1;
}

static int read_wake(struct reader *reader, const struct value *value, void *userdata)
{
        static const struct field fields[] = {
                { .name = "holdTimeout", .read = read_hold_timeout },
                { .name = "maxHeld", .read = read_max_held },
                { .name = "from", .read = read_from },
                { .name = "replicas", .kubernetes = "a target is one process: leave it out" },
                { .name = "parking", .kubernetes = "packets are held without it: leave it out" },
                { .name = "readiness", .kubernetes = "a target is ready when it listens: leave it out" },
        };

        return reader_mapping(reader, value, fields, ELEMENTSOF(fields), userdata);
}

static int read_ignore_cidr(struct reader *reader, const struct value *value, void *userdata)
{
        struct ignore_rule *rule = userdata;

        return read_prefix(reader, value, &rule->prefix);
}

static int read_ignore_port(struct reader *reader, const struct value *value, void *userdata)
{
        struct ignore_rule *rule = userdata;
        uint64_t port;
        int r;

        r = reader_integer(reader, value, 1, UINT16_MAX, &port);
        if (r > 0)
                rule->port = (uint16_t)port;
        return r;
}

static int read_ignore_rule(struct reader *reader, const struct value *value, struct ignore_rule *rule)
{
        static const struct field fields[] = {
                { .name = "cidr", .read = read_ignore_cidr },
                { .name = "port", .read = read_ignore_port },
                { .name = "podSelector", .kubernetes = "name the peers by cidr" },
                { .name = "namespaceSelector", .kubernetes = "name the peers by cidr" },
        };
        size_t found = reader->problems->n_found;
        int r;

        r = reader_mapping(reader, value, fields, ELEMENTSOF(fields), rule);
        if (r <= 0)
                return r;
        if (found == reader->problems->n_found && !reader_child(reader, value, "cidr").node &&
            !reader_child(reader, value, "port").node)
                return reader_problem(reader, value, "would ignore everybody; give cidr, port or both");
        return 1;
}

static int read_ignore(struct reader *reader, const struct value *value, void *userdata)
{
        struct policy *policy = userdata;
        size_t n;
        int r;

        r = reader_list(reader, value, POLICY_RULES_MAX, &n);
        if (r <= 0)
                return r;

        policy->ignore = calloc(n ? n : 1, sizeof(*policy->ignore));
        if (!policy->ignore)
                return -ENOMEM;
        policy->n_ignore = n;
        for (size_t i = 0; i < n; i++) {
                struct value item = reader_item(reader, value, i);

                r = read_ignore_rule(reader, &item, &policy->ignore[i]);
                if (r < 0)
                        return r;
        }
        return 1;
}

static int read_dry_run(struct reader *reader, const struct value *value, void *userdata)
{
        struct policy *policy = userdata;

        return reader_boolean(reader, value, &policy->dry_run);
}

static int read_spec(struct reader *reader, const struct value *value, void *userdata)
{
        static const struct field fields[] = {
                { .name = "listen", .read = read_listen, .required = "name what clients connect to, like [tcp/0.0.0.0:8080]" },
                { .name = "target",
                  .read = target_spec_read,
                  .required = "say what to run, like {kind: Process, command: [/usr/bin/server]}" },
                { .name = "idle", .read = read_idle },
                { .name = "wake", .read = read_wake },
                { .name = "ignore", .read = read_ignore },
                { .name = "dryRun", .read = read_dry_run },
                { .name = "services", .kubernetes = "name the addresses in spec.listen" },
                { .name = "scaledBy", .kubernetes = "lull alone starts and stops the target: leave it out" },
        };

        return reader_mapping(reader, value, fields, ELEMENTSOF(fields), userdata);
}

/* Returns 1 when the document says that it is a policy, else 0 after noting that it does not. */
static int document_is_policy(struct reader *reader, const struct value *root, const char *name, const char *expected)
{
        struct value value = reader_child(reader, root, name);
        const char *text;
        int r;

        if (!value.node)
                return reader_problem(reader, &value, "missing; write %s: %s", name, expected);
        r = reader_text(reader, &value, &text);
        if (r <= 0)
                return r;
        if (strcmp(text, expected) != 0)
                return reader_refuse(reader, &value, "is not known here; write %s: %s", name, expected);
        return 1;
}

static int read_document(struct reader *reader, struct policy *policy)
{
        static const struct field fields[] = {
                { .name = "apiVersion", .read = read_checked },
                { .name = "kind", .read = read_checked },
                { .name = "metadata", .read = read_metadata, .required = "write metadata: {name: NAME}" },
                { .name = "spec", .read = read_spec, .required = "say what to hold and what to run" },
                { .name = "status", .kubernetes = "\"lull policy show\" tells the status: leave it out" },
        };
        struct value root = reader_root(reader);
        int r;

        if (root.node->type != YAML_MAPPING_NODE)
                return reader_refuse(reader, &root, "is not a policy; begin with apiVersion: lull.dev/v1alpha1");

        r = document_is_policy(reader, &root, "apiVersion", "lull.dev/v1alpha1");
        if (r <= 0)
                return r;
        r = document_is_policy(reader, &root, "kind", "ScaleToZero");
        if (r <= 0)
                return r;
        return reader_mapping(reader, &root, fields, ELEMENTSOF(fields), policy);
}

static struct policy *policy_new(void)
{
        struct policy *policy = calloc(1, sizeof(*policy));

        if (!policy)
                return NULL;
        policy->process.stop_signal = SIGTERM;
        policy->process.stop_timeout_ns = 10 * NSEC_PER_SEC;
        policy->idle.after_ns = 300 * NSEC_PER_SEC;
        policy->idle.request_timeout_ns = 1800 * NSEC_PER_SEC;
        policy->idle.min_awake_ns = 60 * NSEC_PER_SEC;
        policy->idle.cpu_millicores = 250;
        policy->wake.hold_timeout_ns = 60 * NSEC_PER_SEC;
        policy->wake.max_held = 1024;
        return policy;
}

int spec_read(struct reader *reader, struct policy **ret_policy)
{
        _cleanup_(policy_freep) struct policy *policy = policy_new();
        size_t found = reader->problems->n_found;
        int r;

        if (!policy)
                return -ENOMEM;
        policy->file = strdup(reader->file);
        policy->line = (unsigned)reader_root(reader).line;
        if (!policy->file)
                return -ENOMEM;

        r = read_document(reader, policy);
        if (r < 0)
                return r;
        if (reader->problems->n_found > found)
                return 0;

        if (!policy->process.environment)
                policy->process.environment = calloc(1, sizeof(char *));
        if (!policy->process.environment)
                return -ENOMEM;

        *ret_policy = TAKE_PTR(policy);
        return 1;
}

int spec_listen_problem(struct reader *reader, size_t index, const char *text)
{
        struct value root = reader_root(reader), spec = reader_child(reader, &root, "spec");
        struct value listen = reader_child(reader, &spec, "listen"), item = reader_item(reader, &listen, index);

        return reader_problem(reader, &item, "%s", text);
}
