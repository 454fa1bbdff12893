/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "policy/spec_fields.h"

enum { OBJECT_NAME_MAX = 253, WORD_MAX = 63 };

/* The API's own kinds, for better advice than "not found" later. */
static const struct {
        const char *kind, *api_version; /* NULL: it has no replicas */
        const char *advice;
} kinds[] = {
        { "Deployment", "apps/v1", NULL },
        { "StatefulSet", "apps/v1", NULL },
        { "ReplicaSet", "apps/v1", NULL },
        { "Job", "batch/v1", NULL },
        { "CronJob", NULL, "its Jobs come and go by the clock" },
        { "DaemonSet", NULL, "it has a pod on every node" },
        { "Pod", NULL, "name the Deployment or what else makes it" },
};

static int read_copy(struct reader *reader, const struct value *value, char **ret_copy)
{
        const char *text;
        int r;

        r = reader_text(reader, value, &text);
        if (r <= 0)
                return r;
        *ret_copy = strdup(text);
        return *ret_copy ? 1 : -ENOMEM;
}

static bool is_subdomain(const char *text)
{
        size_t length = strlen(text);

        return length >= 1 && length <= OBJECT_NAME_MAX && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == length &&
               !strchr("-.", text[0]) && !strchr("-.", text[length - 1]);
}

/* "v1", "apps/v1", "example.com/v1alpha1" */
static bool is_api_version(const char *text)
{
        const char *version = strrchr(text, '/');
        char group[OBJECT_NAME_MAX + 1];

        if (!version)
                return spec_is_dns_label(text);
        if ((size_t)(version - text) > OBJECT_NAME_MAX)
                return false;
        memcpy(group, text, (size_t)(version - text));
        group[version - text] = '\0';
        return is_subdomain(group) && spec_is_dns_label(version + 1);
}

static bool is_kind(const char *text)
{
        size_t length = strlen(text);

        return text[0] >= 'A' && text[0] <= 'Z' && length <= WORD_MAX &&
               strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == length;
}

static int read_api_version(struct reader *reader, const struct value *value, void *userdata)
{
        struct target_reference *reference = &((struct policy *)userdata)->cluster.reference;
        int r;

        r = read_copy(reader, value, &reference->api_version);
        if (r > 0 && !is_api_version(reference->api_version))
                return reader_refuse(reader, value, "is not an API version; write it like apps/v1");
        return r;
}

static int read_kind(struct reader *reader, const struct value *value, void *userdata)
{
        struct target_reference *reference = &((struct policy *)userdata)->cluster.reference;
        int r;

        r = read_copy(reader, value, &reference->kind);
        if (r > 0 && !is_kind(reference->kind))
                return reader_refuse(reader, value, "is not a kind of object; write it like Deployment");
        return r;
}

static int read_name(struct reader *reader, const struct value *value, void *userdata)
{
        struct target_reference *reference = &((struct policy *)userdata)->cluster.reference;
        int r;

        r = read_copy(reader, value, &reference->name);
        if (r > 0 && !is_subdomain(reference->name))
                return reader_refuse(reader, value,
                                     "is not the name of an object; use lower-case letters, digits, \"-\" and \".\", %d at most",
                                     OBJECT_NAME_MAX);
        return r;
}

static const char instead[] = "a target is given by its apiVersion, kind and name";

const struct field reference_fields[] = {
        { .name = "apiVersion", .read = read_api_version, .required = "write it like apps/v1" },
        { .name = "kind", .read = read_kind, .required = "write it like Deployment" },
        { .name = "name", .read = read_name, .required = "name what is to be put to sleep" },
        { .name = "command", .type = FIELD_LIST, .place = FIELD_ON_MACHINE, .elsewhere = instead },
        { .name = "workingDirectory", .place = FIELD_ON_MACHINE, .elsewhere = instead },
        { .name = "environment", .type = FIELD_MAPPING, .place = FIELD_ON_MACHINE, .elsewhere = instead },
        { .name = "user", .place = FIELD_ON_MACHINE, .elsewhere = instead },
        { .name = "stopSignal", .place = FIELD_ON_MACHINE, .elsewhere = instead },
        { .name = "stopTimeout", .type = FIELD_DURATION, .place = FIELD_ON_MACHINE, .elsewhere = instead },
        { 0 },
};

/* Of the API's own groups, which have no dot in their names, only known kinds at their known place. */
static int reference_check(struct reader *reader, const struct value *value, const struct target_reference *reference)
{
        struct value kind = reader_child(reader, value, "kind"), api_version = reader_child(reader, value, "apiVersion");

        if (strchr(reference->api_version, '.'))
                return 1;
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                if (strcmp(kinds[i].kind, reference->kind) != 0)
                        continue;
                if (!kinds[i].api_version)
                        return reader_refuse(reader, &kind, "cannot be put to sleep: %s", kinds[i].advice);
                if (strcmp(kinds[i].api_version, reference->api_version) != 0)
                        return reader_refuse(reader, &api_version, "has no %s; write %s", reference->kind, kinds[i].api_version);
        }
        return 1;
}

int spec_read_reference(struct reader *reader, const struct value *value, void *userdata)
{
        struct policy *policy = userdata;
        struct target_reference *reference = &policy->cluster.reference;
        size_t found = reader->problems->n_found;
        int r;

        r = reader_mapping(reader, value, reference_fields, policy);
        if (r <= 0 || found != reader->problems->n_found)
                return r;

        if (strcmp(reference->api_version, "batch/v1") == 0 && strcmp(reference->kind, "Job") == 0)
                policy->target = TARGET_JOB;
        return reference_check(reader, value, reference);
}

static int read_service(struct reader *reader, const struct value *value, struct policy *policy, size_t index)
{
        char **services = policy->cluster.services;
        int r;

        r = read_copy(reader, value, &services[index]);
        if (r <= 0)
                return r;
        if (!spec_is_dns_label(services[index]))
                return reader_refuse(reader, value, "is not the name of a Service");
        for (size_t i = 0; i < index; i++)
                if (strcmp(services[i], services[index]) == 0)
                        return reader_refuse(reader, value, "is given twice; remove one of the two");
        return 1;
}

int spec_read_services(struct reader *reader, const struct value *value, void *userdata)
{
        struct policy *policy = userdata;
        size_t n;
        int r;

        r = reader_list(reader, value, SPEC_SERVICES_MAX, &n);
        if (r <= 0)
                return r;
        if (n == 0)
                return reader_problem(reader, value,
                                      "is empty; name a Service, or leave the field out for all that select the target's pods");

        policy->cluster.services = calloc(n + 1, sizeof(char *));
        if (!policy->cluster.services)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                struct value item = reader_item(reader, value, i);

                r = read_service(reader, &item, policy, i);
                if (r <= 0)
                        return r;
        }
        return 1;
}
