/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Decodes RFC 4648 base64, white space allowed, into text with a NUL at its end. Returns 0, -EINVAL for text that is none or
 * holds a NUL, or -ENOMEM. */
int kube_base64_decode(const char *text, char **ret_decoded);
