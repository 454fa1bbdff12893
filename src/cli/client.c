/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client.h"

#include <curl/curl.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/transfer.h"

enum { TIMEOUT_MS = 10 * 1000 };

static void curl_easy_cleanupp(CURL **curl)
{
        curl_easy_cleanup(*curl);
}

static size_t collect(char *bytes, size_t size, size_t n, void *userdata)
{
        return buffer_append(userdata, bytes, size * n) < 0 ? 0 : size * n;
}

static int perform(struct cli *cli, CURL *curl, const struct buffer *buffer)
{
        CURLcode code = curl_easy_perform(curl);
        long status = 0;

        if (code != CURLE_OK)
                return transfer_fail(cli, curl, code);
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        if (status != 200)
                return transfer_fail_status(cli, status, buffer);
        return 0;
}

static int request(struct cli *cli, const char *method, const char *path, char **ret_text)
{
        _cleanup_(curl_easy_cleanupp) CURL *curl = NULL;
        _cleanup_(buffer_clear) struct buffer buffer = { 0 };
        int r;

        r = transfer_new(cli, path, &curl);
        if (r < 0)
                return r;
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
        curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, &buffer);

        r = perform(cli, curl, &buffer);
        if (r < 0)
                return r;
        *ret_text = buffer.text ? TAKE_PTR(buffer.text) : strdup("");
        return *ret_text ? 0 : cli_fail(cli, -ENOMEM, "out of memory");
}

static int request_json(struct cli *cli, const char *method, const char *path, json_t **ret_answer)
{
        _cleanup_(freep) char *text = NULL;
        json_error_t error;
        json_t *answer;
        int r;

        r = request(cli, method, path, &text);
        if (r < 0)
                return r;
        answer = json_loads(text, 0, &error);
        if (!answer)
                return cli_fail(cli, -EBADMSG, "lulld's answer is no JSON: %s", error.text);

        *ret_answer = answer;
        return 0;
}

int client_get(struct cli *cli, const char *path, json_t **ret_answer)
{
        return request_json(cli, "GET", path, ret_answer);
}

int client_post(struct cli *cli, const char *path, json_t **ret_answer)
{
        return request_json(cli, "POST", path, ret_answer);
}

int client_get_text(struct cli *cli, const char *path, char **ret_text)
{
        return request(cli, "GET", path, ret_text);
}

static int escape(struct cli *cli, const char *segment, char **ret_escaped)
{
        char *escaped = curl_easy_escape(NULL, segment, 0), *copy = escaped ? strdup(escaped) : NULL;

        curl_free(escaped);
        if (!copy)
                return cli_fail(cli, -ENOMEM, "out of memory");
        *ret_escaped = copy;
        return 0;
}

int client_path(struct cli *cli, const struct collection *collection, const char *name, const char *rest, char **ret_path)
{
        _cleanup_(freep) char *escaped = NULL;
        char *path;
        int r;

        if (*name == '\0')
                return cli_fail(cli, -EINVAL, "%s is not empty", collection->member);
        r = escape(cli, name, &escaped);
        if (r < 0)
                return r;
        if (asprintf(&path, "%s/%s%s", collection->path, escaped, rest) < 0)
                return cli_fail(cli, -ENOMEM, "out of memory");
        *ret_path = path;
        return 0;
}
