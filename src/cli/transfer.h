/* SPDX-License-Identifier: Apache-2.0 */
/* What single requests and the following of a stream share: a curl handle for the control socket, and what its errors mean. */
#pragma once

#include <curl/curl.h>
#include <stddef.h>

struct cli;

struct buffer { /* text, NUL-terminated once something was appended */
        char *text;
        size_t length;
};

/* Returns 0, -ENOMEM, or -EFBIG past 16 MiB. */
int buffer_append(struct buffer *buffer, const char *bytes, size_t length);
void buffer_clear(struct buffer *buffer);

int transfer_new(struct cli *cli, const char *path, CURL **ret_curl);
/* Leaves a message that says what failed and what to do about it; returns -errno. */
int transfer_fail(struct cli *cli, CURL *curl, CURLcode code);
/* The same for an answer with another status than 200: its {"error": {"message": …}} where it has one. */
int transfer_fail_status(struct cli *cli, long status, const struct buffer *answer);
