/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/fields.h"

#include <netinet/in.h>
#include <string.h>

#include "base/macros.h"
#include "base/time.h"
#include "kube/micro_time.h"

void field_fail(struct field_reader *reader, int error, const char *field)
{
        if (reader->failed < 0)
                return;
        reader->failed = error;
        reader->field = field;
}

static const json_t *field_typed(struct field_reader *reader, const json_t *parent, const char *key, json_type type,
                                 const char *field)
{
        const json_t *value = json_object_get(parent, key);

        if (!value || json_is_null(value))
                return NULL;
        if (json_typeof(value) != type) {
                field_fail(reader, -EBADMSG, field);
                return NULL;
        }
        return value;
}

const json_t *field_object(struct field_reader *reader, const json_t *parent, const char *key, const char *field)
{
        return field_typed(reader, parent, key, JSON_OBJECT, field);
}

const json_t *field_array(struct field_reader *reader, const json_t *parent, const char *key, const char *field)
{
        return field_typed(reader, parent, key, JSON_ARRAY, field);
}

const char *field_text(struct field_reader *reader, const json_t *parent, const char *key, const char *field)
{
        const json_t *value = field_typed(reader, parent, key, JSON_STRING, field);

        if (value && strlen(json_string_value(value)) != json_string_length(value))
                field_fail(reader, -EBADMSG, field);
        return json_string_value(value);
}

char *field_copy(struct field_reader *reader, const json_t *parent, const char *key, const char *otherwise, const char *field)
{
        const char *text = field_text(reader, parent, key, field);
        char *copy;

        text = text ? text : otherwise;
        if (!text)
                return NULL;
        copy = strdup(text);
        if (!copy)
                field_fail(reader, -ENOMEM, field);
        return copy;
}

char *field_copy_needed(struct field_reader *reader, const json_t *parent, const char *key, const char *field)
{
        char *copy = field_copy(reader, parent, key, "", field);

        if (copy && *copy == '\0')
                field_fail(reader, -EBADMSG, field);
        return copy;
}

bool field_bool(struct field_reader *reader, const json_t *parent, const char *key, bool otherwise, const char *field)
{
        const json_t *value = json_object_get(parent, key);

        if (!value || json_is_null(value))
                return otherwise;
        if (!json_is_boolean(value))
                field_fail(reader, -EBADMSG, field);
        return json_is_true(value);
}

uint32_t field_number(struct field_reader *reader, const json_t *parent, const char *key, uint32_t otherwise, uint32_t max,
                      const char *field)
{
        const json_t *value = field_typed(reader, parent, key, JSON_INTEGER, field);

        if (!value)
                return otherwise;
        if (json_integer_value(value) < 0 || json_integer_value(value) > (json_int_t)max) {
                field_fail(reader, -EBADMSG, field);
                return otherwise;
        }
        return (uint32_t)json_integer_value(value);
}

int64_t field_integer(struct field_reader *reader, const json_t *parent, const char *key, int64_t otherwise, const char *field)
{
        const json_t *value = field_typed(reader, parent, key, JSON_INTEGER, field);

        return value ? json_integer_value(value) : otherwise;
}

uint64_t field_time(struct field_reader *reader, const json_t *parent, const char *key, const char *field)
{
        const char *text = field_text(reader, parent, key, field);
        uint64_t realtime_us = 0;

        if (text && micro_time_parse(text, &realtime_us) < 0)
                field_fail(reader, -EBADMSG, field);
        return realtime_us * NSEC_PER_USEC;
}

unsigned field_word(struct field_reader *reader, const json_t *parent, const char *key, const char *const *words, int otherwise,
                    const char *field)
{
        const char *text = field_text(reader, parent, key, field);

        for (unsigned i = 0; text && words[i]; i++)
                if (strcmp(words[i], text) == 0)
                        return i;
        if (text || otherwise < 0)
                field_fail(reader, -EBADMSG, field);
        return otherwise < 0 ? 0 : (unsigned)otherwise;
}

/* SCTP and what may come are 0: nothing that can be held. */
uint8_t field_protocol(struct field_reader *reader, const json_t *parent, const char *key, const char *field)
{
        const char *text = field_text(reader, parent, key, field);

        if (!text || strcmp(text, "TCP") == 0)
                return IPPROTO_TCP;
        return strcmp(text, "UDP") == 0 ? IPPROTO_UDP : 0;
}

void *field_allocate(struct field_reader *reader, const json_t *list, size_t size, size_t max, const char *field)
{
        size_t count = json_array_size(list);
        void *array;

        if (count == 0)
                return NULL;
        if (count > max) {
                field_fail(reader, -E2BIG, field);
                return NULL;
        }
        array = calloc(count, size);
        if (!array)
                field_fail(reader, -ENOMEM, field);
        return array;
}
