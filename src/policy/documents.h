/* SPDX-License-Identifier: Apache-2.0 */
/* The documents of a YAML text, one after the other, within bounds that libyaml does not have itself. */
#pragma once

#include <stddef.h>
#include <yaml.h>

#include "policy/problems.h"

enum {
        DOCUMENTS_ANCHORS_MAX = 256, /* in one document */
        DOCUMENTS_DEPTH_MAX = 64,    /* lists and mappings within each other */
};

/* Calls @document for each; a negative result ends the reading and is returned. Broken YAML is noted and ends it too, with the documents
 * before it kept; of a text that is not UTF-8, or past the bounds, nothing is read. Returns 0 or -ENOMEM. */
int documents_read(const char *file, const char *text, size_t length, struct problems *problems,
                   int (*document)(const char *file, yaml_document_t *document, void *userdata), void *userdata);
