/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "policy/spec_fields.h"

/* The syntax of labels and of selectors in text form: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/ */

enum { LABEL_NAME_MAX = 63, LABEL_PREFIX_MAX = 253 };

enum selector_operator { OPERATOR_IN, OPERATOR_NOT_IN, OPERATOR_EXISTS, OPERATOR_DOES_NOT_EXIST };

static const char *const operators[] = {
        [OPERATOR_IN] = "In",
        [OPERATOR_NOT_IN] = "NotIn",
        [OPERATOR_EXISTS] = "Exists",
        [OPERATOR_DOES_NOT_EXIST] = "DoesNotExist",
        NULL,
};

struct selector {
        FILE *text;
        size_t n_requirements;
};

struct requirement {
        const char *key;
        enum selector_operator operator;
        const char *values[SPEC_SELECTOR_MAX];
        size_t n_values;
};

static bool is_alphanumeric(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_label_name(const char *text)
{
        size_t length = strlen(text);

        for (const char *c = text; *c; c++)
                if (!is_alphanumeric(*c) && !strchr("-_.", *c))
                        return false;
        return length >= 1 && length <= LABEL_NAME_MAX && is_alphanumeric(text[0]) && is_alphanumeric(text[length - 1]);
}

/* "app", "example.com/app" */
static bool is_label_key(const char *text)
{
        const char *slash = strchr(text, '/');
        size_t length = slash ? (size_t)(slash - text) : 0;

        if (!slash)
                return is_label_name(text);
        return length >= 1 && length <= LABEL_PREFIX_MAX && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == length &&
               is_label_name(slash + 1);
}

static int check_key(struct reader *reader, const struct value *value, const char *key)
{
        if (is_label_key(key))
                return 1;
        return reader_refuse(reader, value, "is not the key of a label; write it like app or example.com/app");
}

static int read_label_value(struct reader *reader, const struct value *value, const char **ret_text)
{
        const char *text;
        int r;

        r = reader_text(reader, value, &text);
        if (r <= 0)
                return r;
        if (*text && !is_label_name(text))
                return reader_refuse(reader, value,
                                     "is not the value of a label; use letters, digits, \"-\", \"_\" and \".\", %d at most",
                                     LABEL_NAME_MAX);
        *ret_text = text;
        return 1;
}

static int selector_account(struct reader *reader, const struct value *value, struct selector *selector)
{
        if (++selector->n_requirements > SPEC_SELECTOR_MAX)
                return reader_problem(reader, value, "is one requirement too many; at most %d are possible", SPEC_SELECTOR_MAX);
        if (selector->n_requirements > 1)
                fputc(',', selector->text);
        return 1;
}

static int read_match_labels(struct reader *reader, const struct value *value, void *userdata)
{
        struct selector *selector = userdata;
        struct value key, label;
        const char *text = "";
        int r;

        if (value->node->type != YAML_MAPPING_NODE)
                return reader_refuse(reader, value, "is not a mapping; write each label as KEY: VALUE");
        for (size_t i = 0; reader_pair(reader, value, i, &key, &label); i++) {
                r = check_key(reader, &key, key.name);
                if (r > 0)
                        r = read_label_value(reader, &label, &text);
                if (r > 0)
                        r = selector_account(reader, &label, selector);
                if (r <= 0)
                        return r;
                fprintf(selector->text, "%s=%s", key.name, text);
        }
        return 1;
}

static int read_key(struct reader *reader, const struct value *value, void *userdata)
{
        struct requirement *requirement = userdata;
        int r;

        r = reader_text(reader, value, &requirement->key);
        if (r <= 0)
                return r;
        return check_key(reader, value, requirement->key);
}

static int read_values(struct reader *reader, const struct value *value, void *userdata)
{
        struct requirement *requirement = userdata;
        size_t n;
        int r;

        r = reader_list(reader, value, SPEC_SELECTOR_MAX, &n);
        if (r <= 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                struct value item = reader_item(reader, value, i);

                r = read_label_value(reader, &item, &requirement->values[i]);
                if (r <= 0)
                        return r;
                requirement->n_values++;
        }
        return 1;
}

static const struct field requirement_fields[] = {
        { .name = "key", .read = read_key, .required = "name a label, like app" },
        { .name = "operator",
          .type = FIELD_WORD,
          .words = operators,
          .required = "write In, NotIn, Exists or DoesNotExist",
          FIELD_OF(struct requirement, operator) },
        { .name = "values", .type = FIELD_LIST, .max = SPEC_SELECTOR_MAX, .read = read_values },
        { 0 },
};

static void requirement_print(const struct requirement *requirement, FILE *text)
{
        switch (requirement->operator) {
        case OPERATOR_EXISTS:
                fputs(requirement->key, text);
                return;
        case OPERATOR_DOES_NOT_EXIST:
                fprintf(text, "!%s", requirement->key);
                return;
        default:
                fprintf(text, "%s %s (", requirement->key, requirement->operator== OPERATOR_IN ? "in" : "notin");
                for (size_t i = 0; i < requirement->n_values; i++)
                        fprintf(text, "%s%s", i ? "," : "", requirement->values[i]);
                fputc(')', text);
        }
}

static int read_requirement(struct reader *reader, const struct value *value, struct selector *selector)
{
        struct requirement requirement = { 0 };
        size_t found = reader->problems->n_found;
        bool wants_values;
        int r;

        r = reader_mapping(reader, value, requirement_fields, &requirement);
        if (r <= 0 || found != reader->problems->n_found)
                return r;

        wants_values = requirement.operator== OPERATOR_IN || requirement.operator== OPERATOR_NOT_IN;
        if (wants_values && requirement.n_values == 0)
                return reader_problem(reader, value, "has no values; %s needs at least one", operators[requirement.operator]);
        if (!wants_values && requirement.n_values > 0)
                return reader_problem(reader, value, "has values; %s takes none", operators[requirement.operator]);

        r = selector_account(reader, value, selector);
        if (r > 0)
                requirement_print(&requirement, selector->text);
        return r;
}

static int read_match_expressions(struct reader *reader, const struct value *value, void *userdata)
{
        size_t n;
        int r;

        r = reader_list(reader, value, SPEC_SELECTOR_MAX, &n);
        if (r <= 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                struct value item = reader_item(reader, value, i);

                r = read_requirement(reader, &item, userdata);
                if (r < 0)
                        return r;
        }
        return 1;
}

const struct field selector_fields[] = {
        { .name = "matchLabels", .type = FIELD_MAPPING, .read = read_match_labels },
        { .name = "matchExpressions",
          .type = FIELD_LIST,
          .max = SPEC_SELECTOR_MAX,
          .fields = requirement_fields,
          .read = read_match_expressions },
        { 0 },
};

int spec_read_selector(struct reader *reader, const struct value *value, char **ret_text)
{
        _cleanup_(freep) char *text = NULL;
        struct selector selector = { 0 };
        size_t length;
        bool failed;
        int r;

        selector.text = open_memstream(&text, &length);
        if (!selector.text)
                return -ENOMEM;
        r = reader_mapping(reader, value, selector_fields, &selector);
        failed = ferror(selector.text);
        failed |= fclose(selector.text) != 0;
        if (r > 0 && failed)
                r = -ENOMEM;
        if (r > 0)
                *ret_text = TAKE_PTR(text);
        return r;
}
