/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/answers.h"

#include <stdint.h>
#include <string.h>

#include "bpf/features.h"
#include "serve/event_log.h"
#include "serve/why.h"

static const char plain[] = "text/plain; charset=utf-8";

/* The sequence number that ?after= names, 0 without one; answers 400 when it is no number. */
static bool parse_after(struct http_request *request, uint64_t *ret_after)
{
        const char *text = http_request_query(request, "after");
        char *end = NULL;

        *ret_after = 0;
        if (!text)
                return true;
        errno = 0;
        *ret_after = strtoull(text, &end, 10);
        if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0)
                return true;

        http_reply_error(request, 400, "after: \"%s\" is not a sequence number; write it like after=17", text);
        return false;
}

void answer_events(struct http_request *request, const struct event_log *log)
{
        uint64_t after;

        if (parse_after(request, &after))
                http_reply_json(request, 200, json_pack("{so}", "events", event_log_list(log, after)));
}

void answer_event_stream(struct http_request *request, struct event_log *log)
{
        uint64_t after;

        if (parse_after(request, &after))
                http_reply_event_stream(request, log, after);
}

void answer_features(struct http_request *request)
{
        http_reply_json(request, 200, json_pack("{so}", "features", features_json()));
}

void answer_metrics(struct http_request *request, int r, char *text)
{
        if (r < 0)
                http_reply_error(request, 500, "cannot write the metrics: %s", strerror(-r));
        else
                http_reply_text(request, 200, "text/plain; version=0.0.4; charset=utf-8", text);
}

void answer_ok(struct http_request *request)
{
        http_reply_text(request, 200, plain, strdup("ok\n"));
}

void answer_ready(struct http_request *request, const char *problem)
{
        char *text = NULL;

        if (!problem) {
                answer_ok(request);
                return;
        }
        if (asprintf(&text, "%s\n", problem) < 0)
                text = NULL;
        http_reply_text(request, 503, plain, text);
}

void answer_why(struct http_request *request, json_t *policy)
{
        _cleanup_(freep) char *text = NULL;
        int r = policy ? why_text(policy, &text) : -ENOMEM;

        if (r < 0) {
                json_decref(policy);
                http_reply_error(request, 500, "cannot say why: %s", strerror(-r));
                return;
        }
        http_reply_json(request, 200,
                        json_pack("{sO, sO, ss, so}", "name", json_object_get(policy, "name"), "phase",
                                  json_object_get(policy, "phase"), "text", text, "policy", policy));
}

void answer_programs(struct http_request *request, json_t *programs, json_t *others)
{
        json_array_extend(programs, others);
        json_decref(others);
        http_reply_json(request, 200, json_pack("{so}", "programs", programs));
}
