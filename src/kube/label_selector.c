/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/label_selector.h"

#include <ctype.h>
#include <string.h>

enum operator{ EXISTS, MISSING, IN, NOT_IN };

struct requirement {
        enum operator operator;
        char *key;
        char **values;
        size_t n_values;
};

struct label_selector {
        struct requirement requirements[LABEL_REQUIREMENTS_MAX];
        size_t n_requirements;
};

static void requirement_done(struct requirement *requirement)
{
        for (size_t i = 0; i < requirement->n_values; i++)
                free(requirement->values[i]);
        free(requirement->values);
        free(requirement->key);
}

struct label_selector *label_selector_free(struct label_selector *selector)
{
        if (!selector)
                return NULL;
        for (size_t i = 0; i < selector->n_requirements; i++)
                requirement_done(&selector->requirements[i]);
        free(selector);
        return NULL;
}

static void skip_spaces(const char **at)
{
        while (isspace((unsigned char)**at))
                (*at)++;
}

/* Passes @token and the spaces around it, if it is there. */
static bool take(const char **at, const char *token)
{
        size_t length = strlen(token);

        skip_spaces(at);
        if (strncmp(*at, token, length) != 0)
                return false;
        *at += length;
        skip_spaces(at);
        return true;
}

/* A key or a value; a value may be empty. */
static int take_word(const char **at, char **ret_word)
{
        size_t length = 0;

        skip_spaces(at);
        while (isalnum((unsigned char)(*at)[length]) || ((*at)[length] && strchr("-_./", (*at)[length])))
                length++;
        *ret_word = strndup(*at, length);
        *at += length;
        return *ret_word ? 0 : -ENOMEM;
}

static int take_value(const char **at, struct requirement *requirement)
{
        char **values;
        int r;

        if (requirement->n_values == LABEL_VALUES_MAX)
                return -E2BIG;
        values = reallocarray(requirement->values, requirement->n_values + 1, sizeof(*values));
        if (!values)
                return -ENOMEM;
        requirement->values = values;
        r = take_word(at, &values[requirement->n_values]);
        if (r >= 0)
                requirement->n_values++;
        return r;
}

/* "(a,b)" */
static int take_set(const char **at, struct requirement *requirement)
{
        int r;

        if (!take(at, "("))
                return -EINVAL;
        do {
                r = take_value(at, requirement);
                if (r < 0)
                        return r;
        } while (take(at, ","));
        return take(at, ")") ? 0 : -EINVAL;
}

/* What follows a key: nothing, a value, or a set. */
static int take_condition(const char **at, struct requirement *requirement)
{
        _cleanup_(freep) char *word = NULL;
        int r;

        if (take(at, "!=")) {
                requirement->operator= NOT_IN;
                return take_value(at, requirement);
        }
        if (take(at, "==") || take(at, "=")) {
                requirement->operator= IN;
                return take_value(at, requirement);
        }
        r = take_word(at, &word);
        if (r < 0)
                return r;
        if (strcmp(word, "") == 0) {
                requirement->operator= EXISTS;
                return 0;
        }
        if (strcmp(word, "in") != 0 && strcmp(word, "notin") != 0)
                return -EINVAL;
        requirement->operator= strcmp(word, "in") == 0 ? IN : NOT_IN;
        return take_set(at, requirement);
}

static int take_requirement(const char **at, struct requirement *requirement)
{
        bool missing = take(at, "!");
        int r = take_word(at, &requirement->key);

        if (r < 0)
                return r;
        if (strcmp(requirement->key, "") == 0)
                return -EINVAL;
        if (missing) {
                requirement->operator= MISSING;
                return 0;
        }
        return take_condition(at, requirement);
}

int label_selector_parse(const char *text, struct label_selector **ret_selector)
{
        _cleanup_(label_selector_freep) struct label_selector *selector = calloc(1, sizeof(*selector));
        const char *at = text;
        int r;

        if (!selector)
                return -ENOMEM;
        skip_spaces(&at);
        while (*at) {
                if (selector->n_requirements == LABEL_REQUIREMENTS_MAX)
                        return -E2BIG;
                r = take_requirement(&at, &selector->requirements[selector->n_requirements++]);
                if (r < 0)
                        return r;
                if (*at && (!take(&at, ",") || !*at))
                        return -EINVAL;
        }

        *ret_selector = TAKE_PTR(selector);
        return 0;
}

static bool has_value(const struct requirement *requirement, const char *value)
{
        for (size_t i = 0; value && i < requirement->n_values; i++)
                if (strcmp(requirement->values[i], value) == 0)
                        return true;
        return false;
}

static bool requirement_matches(const struct requirement *requirement, const char *value)
{
        switch (requirement->operator) {
        case EXISTS:
                return value;
        case MISSING:
                return !value;
        case IN:
                return has_value(requirement, value);
        case NOT_IN:
                return !has_value(requirement, value);
        }
        return false;
}

bool label_selector_matches(const struct label_selector *selector, const json_t *labels)
{
        for (size_t i = 0; i < selector->n_requirements; i++) {
                const struct requirement *requirement = &selector->requirements[i];

                if (!requirement_matches(requirement, json_string_value(json_object_get(labels, requirement->key))))
                        return false;
        }
        return true;
}
