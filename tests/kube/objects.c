/* SPDX-License-Identifier: Apache-2.0 */
/* lull's own objects as it reads and writes them, for comparison with their schemas.
 *
 *   objects fields      prints the tables of spec's fields, those of a cluster, as JSON
 *   objects read        reads a spec a line; prints {"problem": TEXT or null, "fresh": whether the policy equals that of a spec with the same
 *                       target and nothing else}
 *   objects status      reads a ScaleToZero a line; prints its status as lull writes it
 *   objects activity    the same of a NodeActivity
 */
#include <string.h>

#include "kube/node_activity.h"
#include "kube/scale_to_zero.h"
#include "policy/object.h"
#include "policy/spec.h"

static const char *const types[] = {
        [FIELD_TEXT] = "text", [FIELD_DURATION] = "duration", [FIELD_INTEGER] = "integer", [FIELD_BOOLEAN] = "boolean",
        [FIELD_WORD] = "word", [FIELD_MAPPING] = "mapping",   [FIELD_LIST] = "list",
};

static json_t *words_json(const char *const *words)
{
        json_t *list = json_array();

        for (; words && *words; words++)
                json_array_append_new(list, json_string(*words));
        return list;
}

static json_t *fields_json(const struct field *fields)
{
        json_t *object = json_object();

        for (; fields && fields->name; fields++)
                if (fields->place != FIELD_ON_MACHINE)
                        json_object_set_new(object, fields->name,
                                            json_pack("{s:s, s:b, s:I, s:I, s:o, s:o}", "type", types[fields->type], "required",
                                                      fields->required != NULL, "min", (json_int_t)fields->min, "max",
                                                      (json_int_t)fields->max, "words", words_json(fields->words), "fields",
                                                      fields_json(fields->fields)));
        return object;
}

static json_t *spec_answer(const json_t *spec)
{
        _cleanup_(policy_freep) struct policy *policy = NULL, *fresh = NULL;
        _cleanup_(freep) char *problem = NULL, *fresh_problem = NULL;
        json_t *target;

        if (policy_from_object("a/b", spec, &policy, &problem) <= 0)
                return json_pack("{s:s, s:b}", "problem", problem, "fresh", 0);

        target = json_pack("{s:O}", "target", json_object_get(spec, "target"));
        if (policy_from_object("a/b", target, &fresh, &fresh_problem) < 0)
                abort();
        json_decref(target);
        return json_pack("{s:n, s:b}", "problem", "fresh", fresh && policy_equal(policy, fresh));
}

static json_t *status_answer(const json_t *source)
{
        _cleanup_(scale_to_zero_freep) struct scale_to_zero *object = NULL;
        const char *field = NULL;

        if (scale_to_zero_read(source, &object, &field) < 0)
                return json_string(field);
        return scale_to_zero_status_json(&object->status);
}

static json_t *activity_answer(const json_t *source)
{
        _cleanup_(node_activity_freep) struct node_activity *activity = NULL;
        const char *field = NULL;

        if (node_activity_read(source, &activity, &field) < 0)
                return json_string(field);
        return node_activity_status_json(activity);
}

static int answer_lines(json_t *(*answer)(const json_t *source))
{
        _cleanup_(freep) char *line = NULL;
        size_t size = 0;

        while (getline(&line, &size, stdin) > 0) {
                json_t *source = json_loads(line, 0, NULL), *result;

                if (!source)
                        return EXIT_FAILURE;
                result = answer(source);
                json_dumpf(result, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
                putchar('\n');
                json_decref(result);
                json_decref(source);
        }
        return EXIT_SUCCESS;
}

static int print_fields(void)
{
        json_t *fields = fields_json(spec_fields);

        json_dumpf(fields, stdout, JSON_INDENT(1));
        putchar('\n');
        json_decref(fields);
        return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
        const char *command = argc == 2 ? argv[1] : "";

        if (strcmp(command, "fields") == 0)
                return print_fields();
        if (strcmp(command, "read") == 0)
                return answer_lines(spec_answer);
        if (strcmp(command, "status") == 0)
                return answer_lines(status_answer);
        if (strcmp(command, "activity") == 0)
                return answer_lines(activity_answer);
        fprintf(stderr, "usage: objects fields | read | status | activity\n");
        return EXIT_FAILURE;
}
