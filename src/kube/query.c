/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/query.h"

#include <curl/curl.h>
#include <string.h>

#include "base/macros.h"

enum { QUERY_BYTES_MAX = 64 * 1024 };

static int query_append(struct kube_query *query, const char *text)
{
        return kube_buffer_append(&query->text, text, strlen(text), QUERY_BYTES_MAX);
}

void kube_query_add(struct kube_query *query, const char *name, const char *value)
{
        char *encoded;

        if (!value || query->failed < 0)
                return;
        encoded = curl_easy_escape(NULL, value, 0);
        if (!encoded) {
                query->failed = -ENOMEM;
                return;
        }
        if ((query->text.length > 0 && query_append(query, "&") < 0) || query_append(query, name) < 0 ||
            query_append(query, "=") < 0 || query_append(query, encoded) < 0)
                query->failed = -ENOMEM;
        curl_free(encoded);
}

int kube_query_text(struct kube_query *query, const char **ret_text)
{
        if (query->failed < 0)
                return query->failed;
        if (kube_buffer_append(&query->text, "", 1, QUERY_BYTES_MAX) < 0)
                return -ENOMEM;
        query->text.length--;
        *ret_text = query->text.data;
        return 0;
}

void kube_query_done(struct kube_query *query)
{
        kube_buffer_done(&query->text);
}
