/* SPDX-License-Identifier: Apache-2.0 */
/* Decompresses gzip as it arrives, also several members one after another (RFC 1952, section 2.2), which libcurl refuses: the API
 * server compresses a watch that begins with the list, and ends a member whenever it flushes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"

struct kube_gunzip;

int kube_gunzip_new(struct kube_gunzip **ret_gunzip);
struct kube_gunzip *kube_gunzip_free(struct kube_gunzip *gunzip);
DEFINE_CLEANUP(struct kube_gunzip, kube_gunzip_free)

/* @output is called with what comes of it, in pieces of bounded size; a negative result ends the call and is returned. Else 0;
 * -EBADMSG when it is not gzip; or -ENOMEM. After a failure the decompressor is good for nothing more. */
int kube_gunzip_feed(struct kube_gunzip *gunzip, const char *data, size_t length,
                     int (*output)(const char *data, size_t length, void *userdata), void *userdata);
/* Whether it could end here: not in the middle of a member. */
bool kube_gunzip_is_whole(const struct kube_gunzip *gunzip);
