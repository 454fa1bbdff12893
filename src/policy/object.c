/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/object.h"

#include <limits.h>
#include <string.h>

#include "policy/problems.h"
#include "policy/reader.h"
#include "policy/spec.h"

enum { PROBLEMS_SHOWN_MAX = 8 };

/* All of these return the node's number, 0 when out of memory, or -ELOOP. */
static int add_value(yaml_document_t *document, const json_t *value, int depth);

static int add_scalar(yaml_document_t *document, const char *text, size_t length, yaml_scalar_style_t style)
{
        if (length > INT_MAX)
                return 0;
        return yaml_document_add_scalar(document, NULL, (const yaml_char_t *)text, (int)length, style);
}

static int add_number(yaml_document_t *document, const json_t *value)
{
        char text[64];

        if (json_is_integer(value))
                snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        else
                snprintf(text, sizeof(text), "%.17g", json_real_value(value));
        return add_scalar(document, text, strlen(text), YAML_PLAIN_SCALAR_STYLE);
}

static int add_list(yaml_document_t *document, const json_t *list, int depth)
{
        int node = yaml_document_add_sequence(document, NULL, YAML_BLOCK_SEQUENCE_STYLE);
        const json_t *item;
        size_t i;

        json_array_foreach(list, i, item) {
                int child = node > 0 ? add_value(document, item, depth + 1) : 0;

                if (child <= 0)
                        return child;
                if (!yaml_document_append_sequence_item(document, node, child))
                        return 0;
        }
        return node;
}

static int add_mapping(yaml_document_t *document, const json_t *object, int depth)
{
        int node = yaml_document_add_mapping(document, NULL, YAML_BLOCK_MAPPING_STYLE);
        const char *name;
        json_t *value;

        json_object_foreach((json_t *)object, name, value) {
                int key, child;

                key = node > 0 ? add_scalar(document, name, strlen(name), YAML_DOUBLE_QUOTED_SCALAR_STYLE) : 0;
                child = key > 0 ? add_value(document, value, depth + 1) : 0;
                if (child <= 0)
                        return child;
                if (!yaml_document_append_mapping_pair(document, node, key, child))
                        return 0;
        }
        return node;
}

static int add_value(yaml_document_t *document, const json_t *value, int depth)
{
        if (depth > OBJECT_DEPTH_MAX)
                return -ELOOP;

        switch (json_typeof(value)) {
        case JSON_OBJECT:
                return add_mapping(document, value, depth);
        case JSON_ARRAY:
                return add_list(document, value, depth);
        case JSON_STRING:
                return add_scalar(document, json_string_value(value), json_string_length(value), YAML_DOUBLE_QUOTED_SCALAR_STYLE);
        case JSON_INTEGER:
        case JSON_REAL:
                return add_number(document, value);
        case JSON_TRUE:
                return add_scalar(document, "true", 4, YAML_PLAIN_SCALAR_STYLE);
        case JSON_FALSE:
                return add_scalar(document, "false", 5, YAML_PLAIN_SCALAR_STYLE);
        default:
                return add_scalar(document, "null", 4, YAML_PLAIN_SCALAR_STYLE);
        }
}

static int add_root(yaml_document_t *document, const json_t *spec)
{
        int root = yaml_document_add_mapping(document, NULL, YAML_BLOCK_MAPPING_STYLE), key, value;

        if (!root || !spec)
                return root;
        key = add_scalar(document, "spec", 4, YAML_DOUBLE_QUOTED_SCALAR_STYLE);
        value = key ? add_value(document, spec, 1) : 0;
        if (value <= 0)
                return value;
        return yaml_document_append_mapping_pair(document, root, key, value);
}

static char *problems_join(const struct problems *problems)
{
        _cleanup_(freep) char *text = NULL;
        size_t length, shown = MIN(problems->n_messages, (size_t)PROBLEMS_SHOWN_MAX);
        FILE *stream = open_memstream(&text, &length);
        bool failed;

        if (!stream)
                return NULL;
        for (size_t i = 0; i < shown; i++)
                fprintf(stream, "%s%s", i ? "; " : "", problems->messages[i]);
        if (problems->n_found > shown)
                fprintf(stream, "; and %zu more", problems->n_found - shown);
        failed = ferror(stream);
        failed |= fclose(stream) != 0;
        return failed ? NULL : TAKE_PTR(text);
}

static int read_document(const char *name, yaml_document_t *document, struct policy **ret_policy, char **ret_problem)
{
        _cleanup_(problems_done) struct problems problems = { 0 };
        _cleanup_(policy_freep) struct policy *policy = NULL;
        struct reader reader = { .document = document, .problems = &problems, .cluster = true };
        int r;

        r = spec_read(&reader, &policy);
        if (r < 0)
                return r;
        if (r == 0) {
                *ret_problem = problems_join(&problems);
                return *ret_problem ? 0 : -ENOMEM;
        }

        policy->name = strdup(name);
        if (!policy->name)
                return -ENOMEM;
        *ret_policy = TAKE_PTR(policy);
        return 1;
}

int policy_from_object(const char *name, const json_t *spec, struct policy **ret_policy, char **ret_problem)
{
        _cleanup_(yaml_document_delete) yaml_document_t document;
        char *problem;
        int r;

        if (!yaml_document_initialize(&document, NULL, NULL, NULL, 1, 1)) {
                memset(&document, 0, sizeof(document));
                return -ENOMEM;
        }
        r = add_root(&document, spec);
        if (r == 0)
                return -ENOMEM;
        if (r > 0)
                return read_document(name, &document, ret_policy, ret_problem);

        if (asprintf(&problem, "spec: has more than %d lists and mappings within each other", OBJECT_DEPTH_MAX) < 0)
                return -ENOMEM;
        *ret_problem = problem;
        return 0;
}
