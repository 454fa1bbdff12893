/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader and the writer of a ScaleToZero's status share. */
#pragma once

#include "kube/fields.h"
#include "kube/scale_to_zero.h"

extern const char *const status_origins[];     /* by enum frontend_origin */
extern const char *const status_probe_types[]; /* by enum probe_type; NONE is never written */

/* Reads @status, which may be NULL, into an empty *@ret_status; what was read before a mistake is there to be freed. */
void scale_to_zero_status_read(struct field_reader *reader, const json_t *status, struct scale_to_zero_status *ret_status);
