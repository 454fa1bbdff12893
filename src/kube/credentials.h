/* SPDX-License-Identifier: Apache-2.0 */
/* What a request is authenticated and verified with, as it stands in its files now.
 *
 * The token is read again when it is older than KUBE_TOKEN_SECONDS or was dropped; the authority, the certificate and its key
 * when their files have changed (another inode, time or size), which is looked up at each refresh. A file that can't be read
 * keeps what was read last.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/config.h"

enum { KUBE_TOKEN_SECONDS = 60, KUBE_CREDENTIAL_BYTES_MAX = 1 << 20 };

struct kube_credentials;

/* Copies what it needs of @config. Returns 0 or -ENOMEM. */
int kube_credentials_new(const struct kube_config *config, struct kube_credentials **ret_credentials);
struct kube_credentials *kube_credentials_free(struct kube_credentials *credentials);
DEFINE_CLEANUP(struct kube_credentials, kube_credentials_free)

/* Returns 0, or -errno of a file that was never read; *ret_file names it then, as long as @credentials live. */
int kube_credentials_refresh(struct kube_credentials *credentials, uint64_t now_ns, const char **ret_file);
/* The server has refused @token: it is read again at the next refresh. */
void kube_credentials_drop_token(struct kube_credentials *credentials, const char *token);

/* PEM texts and the token; NULL for what the configuration has not. Valid until the next refresh. */
const char *kube_credentials_ca(const struct kube_credentials *credentials);
const char *kube_credentials_certificate(const struct kube_credentials *credentials);
const char *kube_credentials_key(const struct kube_credentials *credentials);
const char *kube_credentials_token(const struct kube_credentials *credentials);
