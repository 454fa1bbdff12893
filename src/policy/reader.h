/* SPDX-License-Identifier: Apache-2.0 */
/* Typed reading of one document, with a message for whatever does not fit.
 *
 * The same tables of fields serve YAML files on one machine and the API's objects in a cluster (policy/object.h makes a document of
 * one). A table is a constant array that ends with a field without a name.
 *
 * A value is a node and the way to it, so that a message can say file, line and field. Plain scalars are read by the core schema of
 * YAML 1.2 (section 10.3.2): yes, no, on and off are text, not booleans. A null means that the field was not given. Aliases share a
 * node and are never expanded, and reading goes only as deep as the fields it knows: no document can make it loop.
 *
 * The reading functions return 1 with a value, 0 after noting a problem, or -ENOMEM.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yaml.h>

#include "policy/problems.h"

enum { READER_FIELDS_MAX = 32 }; /* fields that one mapping can know */

struct reader {
        const char *file; /* its name in messages; NULL: an object of the API, which has no lines */
        yaml_document_t *document;
        struct problems *problems;
        bool cluster; /* which fields there are; else those of one machine */
};

struct value {
        const struct value *parent; /* NULL: the document */
        const char *name;           /* of the field, or NULL: an entry of a list */
        size_t index;
        yaml_node_t *node; /* NULL: not given */
        size_t line;
};

enum field_type {
        FIELD_TEXT,
        FIELD_DURATION, /* from min to max nanoseconds */
        FIELD_INTEGER,  /* from min to max */
        FIELD_BOOLEAN,
        FIELD_WORD,    /* one of words */
        FIELD_MAPPING, /* with fields; NULL: with any */
        FIELD_LIST,    /* at most max entries, mappings with fields; NULL: text */
};

enum field_place { FIELD_ANYWHERE, FIELD_ON_MACHINE, FIELD_IN_CLUSTER };

struct field {
        const char *name;
        enum field_type type;
        enum field_place place;
        const char *elsewhere; /* of a field for one place: what takes its place in the other */
        const char *required;  /* NULL: optional; else what to write when it is missing */
        uint64_t min, max;
        const char *const *words; /* NULL-terminated, two at least; the value is the index */
        const struct field *fields;
        /* Without it, durations, integers, booleans and words are stored where FIELD_OF() says, in what userdata points to, and the
         * fields of a mapping are read into the same userdata. */
        int (*read)(struct reader *reader, const struct value *value, void *userdata);
        size_t offset, size;
};

#define FIELD_OF(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)NULL)->member)

struct value reader_root(const struct reader *reader);
/* A field of a mapping, or an entry of a list. Its node is NULL where there is none. */
struct value reader_child(const struct reader *reader, const struct value *parent, const char *name);
struct value reader_item(const struct reader *reader, const struct value *list, size_t index);
/* A key of a mapping and its value, in the order of the file, as long as that returns true. */
bool reader_pair(const struct reader *reader, const struct value *mapping, size_t index, struct value *ret_key,
                 struct value *ret_value);
bool reader_is_null(const struct value *value);

/* Adds "FILE:LINE: FIELD: MESSAGE". Returns 0 or -ENOMEM. */
int reader_problem(struct reader *reader, const struct value *value, const char *format, ...) _printf_(3, 4);
/* The same, with the value in front of the message: FIELD: "VALUE" MESSAGE. */
int reader_refuse(struct reader *reader, const struct value *value, const char *format, ...) _printf_(3, 4);

/* Calls each field's function; notes unknown, repeated and missing fields. */
int reader_mapping(struct reader *reader, const struct value *value, const struct field *fields, void *userdata);
int reader_list(struct reader *reader, const struct value *value, size_t max, size_t *ret_n);
int reader_text(struct reader *reader, const struct value *value, const char **ret_text); /* valid as long as the document */
int reader_boolean(struct reader *reader, const struct value *value, bool *ret_boolean);
int reader_integer(struct reader *reader, const struct value *value, uint64_t min, uint64_t max, uint64_t *ret_integer);
int reader_duration(struct reader *reader, const struct value *value, uint64_t min_ns, uint64_t max_ns, uint64_t *ret_ns);
