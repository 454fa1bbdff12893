/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of spec's fields, part by part, and what two of them share. All but the entries of ignore are read into a struct policy. */
#pragma once

#include "policy/policy.h"
#include "policy/reader.h"

enum {
        SPEC_STRINGS_MAX = 1024,             /* entries of command, and of environment */
        SPEC_STRINGS_BYTES_MAX = 128 * 1024, /* and their length in all; aliases count each time */
        SPEC_SERVICES_MAX = 64,
        SPEC_SELECTOR_MAX = 64, /* requirements of one selector, and values of one requirement */
};

#define SPEC_LONGEST_NS (8760 * 3600 * NSEC_PER_SEC) /* a year: sums and multiples of it fit in 64 bits */

extern const struct field process_fields[];   /* spec.target on one machine */
extern const struct field reference_fields[]; /* spec.target in a cluster */
extern const struct field idle_fields[];
extern const struct field wake_fields[];
extern const struct field ignore_fields[];   /* of an entry */
extern const struct field selector_fields[]; /* of a label selector, as the API has it */

int spec_read_reference(struct reader *reader, const struct value *value, void *userdata);
int spec_read_services(struct reader *reader, const struct value *value, void *userdata);
int spec_read_ignore(struct reader *reader, const struct value *value, void *userdata);

int spec_read_prefix(struct reader *reader, const struct value *value, struct prefix *ret_prefix);
/* A selector in its text form; the caller owns *ret_text. */
int spec_read_selector(struct reader *reader, const struct value *value, char **ret_text);
bool spec_is_dns_label(const char *text);
