/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/reader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/time.h"
#include "policy/suggest.h"

enum { PATH_TEXT_MAX = 256 };

static const char *node_text(const yaml_node_t *node)
{
        return (const char *)node->data.scalar.value;
}

static bool node_is_plain(const yaml_node_t *node)
{
        return node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static bool word_is_one_of(const char *word, const char *const *words, size_t n_words)
{
        for (size_t i = 0; i < n_words; i++)
                if (strcmp(word, words[i]) == 0)
                        return true;
        return false;
}

static struct value value_at(const struct value *parent, const char *name, size_t index, yaml_node_t *node)
{
        return (struct value){
                .parent = parent,
                .name = name,
                .index = index,
                .node = node,
                .line = node ? node->start_mark.line + 1 : parent->line,
        };
}

struct value reader_root(const struct reader *reader)
{
        yaml_node_t *node = yaml_document_get_root_node(reader->document);

        return (struct value){ .node = node, .line = node ? node->start_mark.line + 1 : 1 };
}

bool reader_pair(const struct reader *reader, const struct value *mapping, size_t index, struct value *ret_key,
                 struct value *ret_value)
{
        const yaml_node_pair_t *pair;
        yaml_node_t *key;

        if (!mapping->node || mapping->node->type != YAML_MAPPING_NODE)
                return false;
        pair = mapping->node->data.mapping.pairs.start + index;
        if (pair >= mapping->node->data.mapping.pairs.top)
                return false;

        key = yaml_document_get_node(reader->document, pair->key);
        *ret_key = value_at(mapping, key->type == YAML_SCALAR_NODE ? node_text(key) : "?", 0, key);
        *ret_value = value_at(mapping, ret_key->name, 0, yaml_document_get_node(reader->document, pair->value));
        return true;
}

struct value reader_child(const struct reader *reader, const struct value *parent, const char *name)
{
        struct value key, value;

        for (size_t i = 0; reader_pair(reader, parent, i, &key, &value); i++)
                if (key.node->type == YAML_SCALAR_NODE && strcmp(key.name, name) == 0 && !reader_is_null(&value))
                        return value;
        return value_at(parent, name, 0, NULL);
}

struct value reader_item(const struct reader *reader, const struct value *list, size_t index)
{
        yaml_node_item_t *item = NULL;

        if (list->node && list->node->type == YAML_SEQUENCE_NODE)
                item = list->node->data.sequence.items.start + index;
        if (!item || item >= list->node->data.sequence.items.top)
                return value_at(list, NULL, index, NULL);
        return value_at(list, NULL, index, yaml_document_get_node(reader->document, *item));
}

bool reader_is_null(const struct value *value)
{
        static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };

        return value->node && node_is_plain(value->node) && word_is_one_of(node_text(value->node), nulls, ELEMENTSOF(nulls));
}

/* Writes "spec.ignore[2].cidr", cut where it does not fit. */
static size_t path_format(const struct value *value, char buffer[static PATH_TEXT_MAX])
{
        char quoted[PROBLEM_QUOTED_MAX];
        size_t length;

        if (!value->parent) {
                buffer[0] = '\0';
                return 0;
        }

        length = path_format(value->parent, buffer);
        if (value->name) {
                problem_quote(value->name, strlen(value->name), quoted);
                quoted[strlen(quoted) - 1] = '\0';
                snprintf(buffer + length, PATH_TEXT_MAX - length, "%s%s", length ? "." : "", quoted + 1);
        } else {
                snprintf(buffer + length, PATH_TEXT_MAX - length, "[%zu]", value->index);
        }
        return strlen(buffer);
}

static int problem_print(struct reader *reader, const struct value *value, const char *what, const char *format, va_list arguments)
{
        _cleanup_(freep) char *text = NULL;
        char path[PATH_TEXT_MAX];

        if (vasprintf(&text, format, arguments) < 0) {
                text = NULL; /* undefined after a failure */
                return -ENOMEM;
        }
        return problems_add(reader->problems, reader->file, reader->file ? value->line : 0, "%s%s%s%s%s", path,
                            path_format(value, path) ? ": " : "", what, *what ? " " : "", text);
}

int reader_problem(struct reader *reader, const struct value *value, const char *format, ...)
{
        va_list arguments;
        int r;

        va_start(arguments, format);
        r = problem_print(reader, value, "", format, arguments);
        va_end(arguments);
        return r;
}

static const char *value_describe(const struct value *value, char buffer[static PROBLEM_QUOTED_MAX])
{
        if (!value->node || reader_is_null(value))
                return "an empty value";

        switch (value->node->type) {
        case YAML_SEQUENCE_NODE:
                return "a list";
        case YAML_MAPPING_NODE:
                return "a mapping";
        default:
                return problem_quote(node_text(value->node), value->node->data.scalar.length, buffer);
        }
}

int reader_refuse(struct reader *reader, const struct value *value, const char *format, ...)
{
        char buffer[PROBLEM_QUOTED_MAX];
        va_list arguments;
        int r;

        va_start(arguments, format);
        r = problem_print(reader, value, value_describe(value, buffer), format, arguments);
        va_end(arguments);
        return r;
}

static int unknown_field(struct reader *reader, const struct value *key, const struct field *fields)
{
        const char *names[READER_FIELDS_MAX];
        const char *nearest;
        size_t n_names = 0;

        if (key->node->type != YAML_SCALAR_NODE)
                return reader_refuse(reader, key, "is not the name of a field");

        for (; fields[n_names].name; n_names++)
                names[n_names] = fields[n_names].name;
        nearest = suggest_nearest(key->name, names, n_names);
        if (nearest)
                return reader_problem(reader, key, "unknown field; did you mean \"%s\"?", nearest);
        return reader_problem(reader, key, "unknown field");
}

static bool field_is_here(const struct reader *reader, const struct field *field)
{
        return field->place != (reader->cluster ? FIELD_ON_MACHINE : FIELD_IN_CLUSTER);
}

/* The field of that name, the one for this place first. */
static const struct field *field_find(const struct reader *reader, const struct value *key, const struct field *fields)
{
        const struct field *elsewhere = NULL;

        if (key->node->type != YAML_SCALAR_NODE)
                return NULL;
        for (; fields->name; fields++)
                if (strcmp(fields->name, key->name) == 0) {
                        if (field_is_here(reader, fields))
                                return fields;
                        elsewhere = fields;
                }
        return elsewhere;
}

static void unsigned_store(void *target, size_t size, uint64_t integer)
{
        uint16_t integer16 = (uint16_t)integer;
        uint32_t integer32 = (uint32_t)integer;

        if (size == sizeof(integer16))
                memcpy(target, &integer16, size);
        else if (size == sizeof(integer32))
                memcpy(target, &integer32, size);
        else
                memcpy(target, &integer, size);
}

/* "is neither Ignore nor Hold", "is none of In, NotIn, Exists" */
static int word_refuse(struct reader *reader, const struct value *value, const char *const *words)
{
        char list[256] = "";
        size_t length = 0;

        if (!words[2])
                return reader_refuse(reader, value, "is neither %s nor %s", words[0], words[1]);
        for (size_t i = 0; words[i] && length < sizeof(list); i++)
                length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%s", i ? ", " : "", words[i]);
        return reader_refuse(reader, value, "is none of %s", list);
}

static int word_read(struct reader *reader, const struct value *value, const char *const *words, uint64_t *ret_index)
{
        const char *text = "";
        int r;

        r = reader_text(reader, value, &text);
        if (r <= 0)
                return r;
        for (size_t i = 0; words[i]; i++)
                if (strcmp(text, words[i]) == 0) {
                        *ret_index = i;
                        return 1;
                }
        return word_refuse(reader, value, words);
}

static int field_store(struct reader *reader, const struct field *field, const struct value *value, void *target)
{
        uint64_t integer = 0;
        int r;

        switch (field->type) {
        case FIELD_DURATION:
                r = reader_duration(reader, value, field->min, field->max, &integer);
                break;
        case FIELD_INTEGER:
                r = reader_integer(reader, value, field->min, field->max, &integer);
                break;
        case FIELD_WORD:
                r = word_read(reader, value, field->words, &integer);
                break;
        case FIELD_BOOLEAN:
                return reader_boolean(reader, value, target);
        default:
                return -EINVAL; /* such fields have a function of their own */
        }
        if (r > 0)
                unsigned_store(target, field->size, integer);
        return r;
}

static int field_read(struct reader *reader, const struct field *field, const struct value *key, const struct value *value,
                      size_t *seen_line, void *userdata)
{
        if (!field_is_here(reader, field))
                return reader_problem(reader, key, "only on %s; here %s",
                                      field->place == FIELD_IN_CLUSTER ? "Kubernetes" : "one machine", field->elsewhere);
        if (*seen_line)
                return reader_problem(reader, key, "given before in line %zu; remove one of the two", *seen_line);

        *seen_line = key->line;
        if (reader_is_null(value))
                return 0;
        if (field->read)
                return field->read(reader, value, userdata);
        if (field->type == FIELD_MAPPING)
                return reader_mapping(reader, value, field->fields, userdata);
        return field_store(reader, field, value, (char *)userdata + field->offset);
}

static int missing_fields(struct reader *reader, const struct value *mapping, const struct field *fields)
{
        for (; fields->name; fields++) {
                struct value missing = reader_child(reader, mapping, fields->name);
                int r;

                if (!fields->required || missing.node || !field_is_here(reader, fields))
                        continue;
                r = reader_problem(reader, &missing, "missing; %s", fields->required);
                if (r < 0)
                        return r;
        }
        return 1;
}

int reader_mapping(struct reader *reader, const struct value *value, const struct field *fields, void *userdata)
{
        size_t seen_lines[READER_FIELDS_MAX] = { 0 };
        struct value key, child;
        int r;

        if (!value->node || value->node->type != YAML_MAPPING_NODE)
                return reader_refuse(reader, value, "is not a mapping; write fields as NAME: VALUE");

        for (size_t i = 0; reader_pair(reader, value, i, &key, &child); i++) {
                const struct field *field = field_find(reader, &key, fields);

                if (field)
                        r = field_read(reader, field, &key, &child, &seen_lines[field - fields], userdata);
                else
                        r = unknown_field(reader, &key, fields);
                if (r < 0)
                        return r;
        }
        return missing_fields(reader, value, fields);
}

int reader_list(struct reader *reader, const struct value *value, size_t max, size_t *ret_n)
{
        size_t n;

        if (!value->node || value->node->type != YAML_SEQUENCE_NODE)
                return reader_refuse(reader, value, "is not a list; write it like [A, B], or one entry a line after \"- \"");

        n = (size_t)(value->node->data.sequence.items.top - value->node->data.sequence.items.start);
        if (n > max)
                return reader_problem(reader, value, "has %zu entries; at most %zu are possible", n, max);

        *ret_n = n;
        return 1;
}

int reader_text(struct reader *reader, const struct value *value, const char **ret_text)
{
        const yaml_node_t *node = value->node;

        if (!node || node->type != YAML_SCALAR_NODE || reader_is_null(value))
                return reader_refuse(reader, value, "is not text; where it is meant to be empty or \"null\", put it in quotes");
        if (memchr(node_text(node), '\0', node->data.scalar.length))
                return reader_refuse(reader, value, "has a NUL character in it");

        *ret_text = node_text(node);
        return 1;
}

int reader_boolean(struct reader *reader, const struct value *value, bool *ret_boolean)
{
        static const char *const trues[] = { "true", "True", "TRUE" };
        static const char *const falses[] = { "false", "False", "FALSE" };
        bool is_true, is_false;

        if (!value->node || value->node->type != YAML_SCALAR_NODE)
                return reader_refuse(reader, value, "is not a boolean; write true or false");

        is_true = word_is_one_of(node_text(value->node), trues, ELEMENTSOF(trues));
        is_false = word_is_one_of(node_text(value->node), falses, ELEMENTSOF(falses));
        if (!is_true && !is_false)
                return reader_refuse(reader, value, "is not a boolean; write true or false");
        if (!node_is_plain(value->node))
                return reader_refuse(reader, value, "in quotes is text, not a boolean; write %s", is_true ? "true" : "false");

        *ret_boolean = is_true;
        return 1;
}

static int integer_parse(const char *text, uint64_t *ret_integer)
{
        const char *digits = *text == '+' ? text + 1 : text;
        unsigned long long integer;
        int base = 10;
        char *end;

        if (strncmp(text, "0x", 2) == 0 || strncmp(text, "0o", 2) == 0) {
                base = text[1] == 'x' ? 16 : 8;
                digits = text + 2;
        }
        if (strspn(digits, "0123456789abcdefABCDEF") != strlen(digits) || *digits == '\0')
                return -EINVAL;

        errno = 0;
        integer = strtoull(digits, &end, base);
        if (*end)
                return -EINVAL;

        *ret_integer = errno == ERANGE ? UINT64_MAX : integer;
        return 0;
}

int reader_integer(struct reader *reader, const struct value *value, uint64_t min, uint64_t max, uint64_t *ret_integer)
{
        uint64_t integer;

        if (!value->node || !node_is_plain(value->node) || integer_parse(node_text(value->node), &integer) < 0 || integer < min ||
            integer > max)
                return reader_refuse(reader, value, "is not a whole number from %" PRIu64 " to %" PRIu64 "%s", min, max,
                                     value->node && value->node->type == YAML_SCALAR_NODE && !node_is_plain(value->node)
                                             ? " (in quotes it is text)"
                                             : "");

        *ret_integer = integer;
        return 1;
}

/* Whole hours as such: duration_format()'s days cannot be written in a policy. */
static const char *limit_format(uint64_t ns, char buffer[static DURATION_TEXT_MAX])
{
        const uint64_t hour = 3600 * NSEC_PER_SEC;

        if (ns == 0 || ns % hour)
                return duration_format(ns, buffer);
        snprintf(buffer, DURATION_TEXT_MAX, "%" PRIu64 "h", ns / hour);
        return buffer;
}

int reader_duration(struct reader *reader, const struct value *value, uint64_t min_ns, uint64_t max_ns, uint64_t *ret_ns)
{
        char min_text[DURATION_TEXT_MAX], max_text[DURATION_TEXT_MAX];
        uint64_t ns;
        int r = -EINVAL;

        if (value->node && value->node->type == YAML_SCALAR_NODE &&
            strlen(node_text(value->node)) == value->node->data.scalar.length)
                r = duration_parse(node_text(value->node), &ns);
        if (r == -EINVAL)
                return reader_refuse(reader, value, "is not a duration; write it like \"5m\" or \"1m30s\"");
        if (r == -ERANGE || ns < min_ns || ns > max_ns)
                return reader_refuse(reader, value, "is out of range; write a duration from %s to %s",
                                     limit_format(min_ns, min_text), limit_format(max_ns, max_text));

        *ret_ns = ns;
        return 1;
}
