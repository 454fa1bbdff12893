/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of JSON objects, as the resource readers need them: what is absent or null is not there, what has another type is a
 * mistake.
 *
 * A struct field_reader keeps the first mistake, so that a reader asks for all its fields and looks once at the end.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct field_reader {
        int failed;        /* 0 or -errno */
        const char *field; /* the one it is about, a constant */
};

void field_fail(struct field_reader *reader, int error, const char *field);
const json_t *field_object(struct field_reader *reader, const json_t *parent, const char *key, const char *field); /* or NULL */
const json_t *field_array(struct field_reader *reader, const json_t *parent, const char *key, const char *field);  /* or NULL */
const char *field_text(struct field_reader *reader, const json_t *parent, const char *key, const char *field);     /* or NULL */
/* A copy; of @otherwise when it is absent, and NULL when that is NULL. */
char *field_copy(struct field_reader *reader, const json_t *parent, const char *key, const char *otherwise, const char *field);
/* The same; a mistake when it is absent or empty. */
char *field_copy_needed(struct field_reader *reader, const json_t *parent, const char *key, const char *field);
bool field_bool(struct field_reader *reader, const json_t *parent, const char *key, bool otherwise, const char *field);
/* Of 0 to @max. */
uint32_t field_number(struct field_reader *reader, const json_t *parent, const char *key, uint32_t otherwise, uint32_t max,
                      const char *field);
int64_t field_integer(struct field_reader *reader, const json_t *parent, const char *key, int64_t otherwise, const char *field);
/* A wall-clock time as nanoseconds; 0 when it is absent. */
uint64_t field_time(struct field_reader *reader, const json_t *parent, const char *key, const char *field);
/* The index among @words, which end with NULL; a mistake when it is none of them, or absent and @otherwise is negative. */
unsigned field_word(struct field_reader *reader, const json_t *parent, const char *key, const char *const *words, int otherwise,
                    const char *field);
uint8_t field_protocol(struct field_reader *reader, const json_t *parent, const char *key, const char *field);
/* An array of @size bytes an element, as long as @list; NULL when that is empty. */
void *field_allocate(struct field_reader *reader, const json_t *list, size_t size, size_t max, const char *field);
