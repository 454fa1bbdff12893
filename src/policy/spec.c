/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/spec.h"

#include <string.h>

#include "base/time.h"
#include "policy/spec_fields.h"

static int read_checked(struct reader *reader, const struct value *value, void *userdata)
{
        return 1; /* by document_is_policy(), before everything else */
}

bool spec_is_dns_label(const char *text)
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
        if (!spec_is_dns_label(text))
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
                { .name = "labels", .type = FIELD_MAPPING, .read = read_annotations },
                { .name = "annotations", .type = FIELD_MAPPING, .read = read_annotations },
                { .name = "namespace", .place = FIELD_IN_CLUSTER, .elsewhere = "policies have no namespace: leave it out" },
                { 0 },
        };

        return reader_mapping(reader, value, fields, userdata);
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

static const char *const scalers[] = {
        [SCALED_BY_LULL] = "Lull",
        [SCALED_BY_AUTOSCALER] = "HorizontalPodAutoscaler",
        NULL,
};

const struct field spec_fields[] = {
        { .name = "listen",
          .type = FIELD_LIST,
          .place = FIELD_ON_MACHINE,
          .elsewhere = "its Services say what clients connect to: name them in spec.services",
          .max = POLICY_FRONTENDS_MAX,
          .read = read_listen,
          .required = "name what clients connect to, like [tcp/0.0.0.0:8080]" },
        { .name = "target",
          .type = FIELD_MAPPING,
          .place = FIELD_ON_MACHINE,
          .fields = process_fields,
          .required = "say what to run, like {kind: Process, command: [/usr/bin/server]}" },
        { .name = "target",
          .type = FIELD_MAPPING,
          .place = FIELD_IN_CLUSTER,
          .fields = reference_fields,
          .read = spec_read_reference,
          .required = "say what to put to sleep, like {apiVersion: apps/v1, kind: Deployment, name: web}" },
        { .name = "services",
          .type = FIELD_LIST,
          .place = FIELD_IN_CLUSTER,
          .elsewhere = "name the addresses in spec.listen",
          .max = SPEC_SERVICES_MAX,
          .read = spec_read_services },
        { .name = "idle", .type = FIELD_MAPPING, .fields = idle_fields },
        { .name = "wake", .type = FIELD_MAPPING, .fields = wake_fields },
        { .name = "ignore", .type = FIELD_LIST, .max = POLICY_RULES_MAX, .fields = ignore_fields, .read = spec_read_ignore },
        { .name = "scaledBy",
          .type = FIELD_WORD,
          .place = FIELD_IN_CLUSTER,
          .elsewhere = "lull alone starts and stops the target: leave it out",
          .words = scalers,
          FIELD_OF(struct policy, cluster.scaled_by) },
        { .name = "dryRun", .type = FIELD_BOOLEAN, FIELD_OF(struct policy, dry_run) },
        { 0 },
};

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

static int read_file_document(struct reader *reader, const struct value *root, struct policy *policy)
{
        static const struct field fields[] = {
                { .name = "apiVersion", .read = read_checked },
                { .name = "kind", .read = read_checked },
                { .name = "metadata", .read = read_metadata, .required = "write metadata: {name: NAME}" },
                { .name = "spec", .type = FIELD_MAPPING, .fields = spec_fields, .required = "say what to hold and what to run" },
                { .name = "status", .place = FIELD_IN_CLUSTER, .elsewhere = "\"lull policy show\" tells the status: leave it out" },
                { 0 },
        };
        int r;

        if (root->node->type != YAML_MAPPING_NODE)
                return reader_refuse(reader, root, "is not a policy; begin with apiVersion: lull.dev/v1alpha1");

        r = document_is_policy(reader, root, "apiVersion", "lull.dev/v1alpha1");
        if (r <= 0)
                return r;
        r = document_is_policy(reader, root, "kind", "ScaleToZero");
        if (r <= 0)
                return r;
        return reader_mapping(reader, root, fields, policy);
}

/* What is right by itself, but not with a Job. */
static int check_job(struct reader *reader, const struct value *root, const struct policy *policy)
{
        struct value spec = reader_child(reader, root, "spec"), wake = reader_child(reader, &spec, "wake");
        struct value replicas = reader_child(reader, &wake, "replicas"), scaled_by = reader_child(reader, &spec, "scaledBy");

        if (policy->cluster.replicas > 0)
                return reader_problem(reader, &replicas, "cannot be given for a Job, which is resumed as it was; leave it out");
        if (policy->cluster.scaled_by == SCALED_BY_AUTOSCALER)
                return reader_refuse(reader, &scaled_by, "does not scale Jobs; leave it out");
        return 1;
}

/* The API's own server has checked the rest of the object. */
static int read_api_document(struct reader *reader, const struct value *root, struct policy *policy)
{
        static const struct field fields[] = {
                { .name = "spec", .type = FIELD_MAPPING, .fields = spec_fields, .required = "say what to put to sleep" },
                { 0 },
        };

        int r;

        r = reader_mapping(reader, root, fields, policy);
        if (r <= 0 || policy->target != TARGET_JOB)
                return r;
        return check_job(reader, root, policy);
}

static struct policy *policy_new(bool cluster)
{
        struct policy *policy = calloc(1, sizeof(*policy));

        if (!policy)
                return NULL;
        policy->target = cluster ? TARGET_SCALE : TARGET_PROCESS;
        policy->process.stop_signal = SIGTERM;
        policy->process.stop_timeout_ns = 10 * NSEC_PER_SEC;
        policy->cluster.parking = true;
        policy->idle.after_ns = 300 * NSEC_PER_SEC;
        policy->idle.request_timeout_ns = 1800 * NSEC_PER_SEC;
        policy->idle.min_awake_ns = 60 * NSEC_PER_SEC;
        policy->idle.cpu_millicores = 250;
        policy->idle.gpu.after_ns = 1800 * NSEC_PER_SEC;
        policy->wake.hold_timeout_ns = 60 * NSEC_PER_SEC;
        policy->wake.max_held = 1024;
        return policy;
}

/* Where it was read, and what cannot be left out of a process. */
static int policy_complete(const struct reader *reader, struct policy *policy)
{
        if (reader->cluster)
                return 0;

        policy->line = (unsigned)reader_root(reader).line;
        policy->file = strdup(reader->file);
        if (!policy->process.environment)
                policy->process.environment = calloc(1, sizeof(char *));
        return policy->file && policy->process.environment ? 0 : -ENOMEM;
}

int spec_read(struct reader *reader, struct policy **ret_policy)
{
        _cleanup_(policy_freep) struct policy *policy = policy_new(reader->cluster);
        struct value root = reader_root(reader);
        size_t found = reader->problems->n_found;
        int r;

        if (!policy)
                return -ENOMEM;

        if (reader->cluster)
                r = read_api_document(reader, &root, policy);
        else
                r = read_file_document(reader, &root, policy);
        if (r < 0)
                return r;
        if (reader->problems->n_found > found)
                return 0;

        r = policy_complete(reader, policy);
        if (r < 0)
                return r;
        *ret_policy = TAKE_PTR(policy);
        return 1;
}

int spec_listen_problem(struct reader *reader, size_t index, const char *text)
{
        struct value root = reader_root(reader), spec = reader_child(reader, &root, "spec");
        struct value listen = reader_child(reader, &spec, "listen"), item = reader_item(reader, &listen, index);

        return reader_problem(reader, &item, "%s", text);
}
