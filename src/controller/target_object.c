/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/target_object.h"

#include <stdbool.h>
#include <string.h>

#include "kube/buffer.h"
#include "kube/fields.h"

enum { SELECTOR_TEXT_MAX = 64 * 1024 };

struct target_object *target_object_free(struct target_object *object)
{
        if (!object)
                return NULL;
        free(object->uid);
        free(object->resource_version);
        free(object->selector);
        free(object->failure);
        json_decref(object->pod_labels);
        free(object);
        return NULL;
}

static int append(struct kube_buffer *text, const char *part)
{
        return kube_buffer_append(text, part, strlen(part), SELECTOR_TEXT_MAX);
}

static int append_separator(struct kube_buffer *text)
{
        return text->length > 0 ? append(text, ",") : 0;
}

static int match_labels_append(struct kube_buffer *text, const json_t *labels)
{
        const char *key;
        json_t *value;
        int r;

        json_object_foreach((json_t *)labels, key, value) {
                if (!json_is_string(value))
                        return -EBADMSG;
                r = append_separator(text);
                if (r >= 0)
                        r = append(text, key);
                if (r >= 0)
                        r = append(text, "=");
                if (r >= 0)
                        r = append(text, json_string_value(value));
                if (r < 0)
                        return r;
        }
        return 0;
}

static int values_append(struct kube_buffer *text, const char *opening, const json_t *values)
{
        const json_t *value;
        size_t i;
        int r = append(text, opening);

        if (json_array_size(values) == 0)
                return -EBADMSG;
        json_array_foreach(values, i, value) {
                if (!json_is_string(value))
                        return -EBADMSG;
                if (r >= 0 && i > 0)
                        r = append(text, ",");
                if (r >= 0)
                        r = append(text, json_string_value(value));
        }
        return r < 0 ? r : append(text, ")");
}

static int expression_append(struct kube_buffer *text, const json_t *expression)
{
        const char *key = json_string_value(json_object_get(expression, "key"));
        const char *relation = json_string_value(json_object_get(expression, "operator"));
        const json_t *values = json_object_get(expression, "values");
        int r;

        if (!key || !relation)
                return -EBADMSG;
        r = append_separator(text);
        if (r >= 0 && strcmp(relation, "DoesNotExist") == 0)
                r = append(text, "!");
        if (r >= 0)
                r = append(text, key);
        if (r < 0 || strcmp(relation, "Exists") == 0 || strcmp(relation, "DoesNotExist") == 0)
                return r;
        if (strcmp(relation, "In") == 0)
                return values_append(text, " in (", values);
        return strcmp(relation, "NotIn") == 0 ? values_append(text, " notin (", values) : -EBADMSG;
}

int label_selector_text(const json_t *selector, char **ret_text)
{
        _cleanup_(kube_buffer_done) struct kube_buffer text = { 0 };
        const json_t *expressions = json_object_get(selector, "matchExpressions"), *expression;
        size_t i;
        int r = match_labels_append(&text, json_object_get(selector, "matchLabels"));

        json_array_foreach(expressions, i, expression) {
                if (r < 0)
                        return r;
                r = expression_append(&text, expression);
        }
        if (r >= 0)
                r = kube_buffer_append(&text, "", 1, SELECTOR_TEXT_MAX + 1);
        if (r < 0)
                return r == -EMSGSIZE ? -EBADMSG : r;
        *ret_text = TAKE_PTR(text.data);
        return 0;
}

/* @term is "key=value" or "key==value", or something else, which is left out. */
static int term_add(json_t *labels, const char *term, size_t length)
{
        const char *equals = memchr(term, '=', length), *value;
        size_t key_length = equals ? (size_t)(equals - term) : 0;
        _cleanup_(freep) char *key = NULL;

        if (!equals || memchr(term, ' ', length) || (key_length > 0 && term[key_length - 1] == '!'))
                return 0;
        value = equals + (length > key_length + 1 && equals[1] == '=' ? 2 : 1);
        key = strndup(term, key_length);
        return key ? json_object_set_new(labels, key, json_stringn(value, (size_t)(term + length - value))) : -1;
}

json_t *label_selector_labels(const char *text)
{
        json_t *labels = json_object();

        while (labels && *text) {
                const char *open = strchr(text, '('), *end = strchrnul(text, ',');

                if (open && open < end) /* commas inside "in (a,b)" separate no terms */
                        end = strchrnul(strchrnul(open, ')'), ',');
                if (term_add(labels, text, (size_t)(end - text)) < 0) {
                        json_decref(labels);
                        return NULL;
                }
                text = *end ? end + 1 : end;
        }
        return labels;
}

static bool text_is(const json_t *object, const char *key, const char *wanted)
{
        const char *text = json_string_value(json_object_get(object, key));

        return text && strcmp(text, wanted) == 0;
}

/* ReplicaFailure: its pods are refused (quota, admission). Progressing False: a rollout that is past its deadline. A Job that has
 * ended runs no more pods. */
static bool condition_is_failure(const json_t *condition)
{
        if (text_is(condition, "type", "Progressing"))
                return text_is(condition, "status", "False");
        return text_is(condition, "status", "True") &&
               (text_is(condition, "type", "ReplicaFailure") || text_is(condition, "type", "Failed") ||
                text_is(condition, "type", "Complete"));
}

static int condition_text(const json_t *condition, char **ret_text)
{
        const char *type = json_string_value(json_object_get(condition, "type"));
        const char *reason = json_string_value(json_object_get(condition, "reason"));
        const char *message = json_string_value(json_object_get(condition, "message"));
        int length;

        if (message && *message)
                length = asprintf(ret_text, "%s: %s", reason && *reason ? reason : type, message);
        else
                length = asprintf(ret_text, "%s", reason && *reason ? reason : type);
        return length < 0 ? -ENOMEM : 0;
}

/* ReplicaFailure says more than that progress is slow. */
static const json_t *find_failure(const json_t *conditions)
{
        const json_t *condition, *failure = NULL;
        size_t i;

        json_array_foreach(conditions, i, condition) {
                if (!condition_is_failure(condition))
                        continue;
                if (text_is(condition, "type", "ReplicaFailure"))
                        return condition;
                failure = condition;
        }
        return failure;
}

static int failure_read(const json_t *status, enum target_form form, char **ret_failure)
{
        const json_t *failure = form == TARGET_FORM_ANY ? NULL : find_failure(json_object_get(status, "conditions"));

        if (!failure)
                return 0;
        if (form == TARGET_FORM_JOB && (text_is(failure, "type", "Complete") || text_is(failure, "type", "Failed"))) {
                *ret_failure = strdup("the Job has ended, and runs no more pods: make a new one");
                return *ret_failure ? 0 : -ENOMEM;
        }
        return condition_text(failure, ret_failure);
}

/* Kinds that are not Kubernetes' own may have templates of something else below the same name. */
static bool is_pod_template(const json_t *template)
{
        return json_is_array(json_object_get(json_object_get(template, "spec"), "containers"));
}

static void replicas_read(struct field_reader *reader, const json_t *spec, const json_t *status, enum target_form form,
                          struct target_object *object)
{
        if (form == TARGET_FORM_JOB) {
                object->replicas = !field_bool(reader, spec, "suspend", false, "spec.suspend");
                object->ready = field_number(reader, status, "ready", 0, INT32_MAX, "status.ready");
                return;
        }
        if (form == TARGET_FORM_APPS)
                object->replicas = field_number(reader, spec, "replicas", 1, INT32_MAX, "spec.replicas");
        if (json_is_integer(json_object_get(status, "readyReplicas")))
                object->ready = field_number(reader, status, "readyReplicas", 0, INT32_MAX, "status.readyReplicas");
}

static int labels_read(const json_t *template, struct target_object *object)
{
        json_t *labels = json_object_get(json_object_get(template, "metadata"), "labels");

        if (!is_pod_template(template))
                return 0;
        object->pod_labels = json_is_object(labels) ? json_incref(labels) : json_object();
        return object->pod_labels ? 0 : -ENOMEM;
}

int target_object_read(const json_t *source, enum target_form form, struct target_object **ret_object)
{
        _cleanup_(target_object_freep) struct target_object *object = calloc(1, sizeof(*object));
        struct field_reader reader = { 0 };
        const json_t *metadata = field_object(&reader, source, "metadata", "metadata");
        const json_t *spec = field_object(&reader, source, "spec", "spec");
        const json_t *status = field_object(&reader, source, "status", "status");
        int r;

        if (!object)
                return -ENOMEM;
        object->uid = field_copy(&reader, metadata, "uid", "", "metadata.uid");
        object->resource_version = field_copy(&reader, metadata, "resourceVersion", "", "metadata.resourceVersion");
        replicas_read(&reader, spec, status, form, object);
        if (reader.failed < 0)
                return reader.failed;

        r = labels_read(json_object_get(spec, "template"), object);
        if (r >= 0)
                r = label_selector_text(form == TARGET_FORM_ANY ? NULL : json_object_get(spec, "selector"), &object->selector);
        if (r >= 0)
                r = failure_read(status, form, &object->failure);
        if (r < 0)
                return r;
        *ret_object = TAKE_PTR(object);
        return 0;
}
