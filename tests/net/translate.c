/* SPDX-License-Identifier: Apache-2.0 */
/* Hold by hand, for tests of translated frontends: commands on standard input, a line each; JSON on standard output, a line each.
 *
 *     translate BPFFS [wait] [masquerade-all] [cluster=PREFIX]...
 *
 *     from PREFIX                                          who may wake
 *     timeout MILLISECONDS
 *     frontend FRONTEND [local] [affinity] [parking] [masquerade|as-it-is] [range=PREFIX]...
 *     start                                                holds all of these; "stop" ends that
 *     endpoints INDEX [here|there ADDRESS PORT]...
 *     expect                                               a data plane that knows an endpoint
 *     release INDEX                                        which is known to be served
 *     suspend                                              ends for the next one, as a planned restart does
 *     state                                                what is parked, counted and attached
 *
 * Every command is answered by {"did": COMMAND}, with what it has to say; what hold tells is {"event": …}.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <jansson.h>
#include <systemd/sd-event.h>

#include "base/log.h"
#include "base/time.h"
#include "hold/hold.h"

enum { FRONTENDS_MAX = 8, PREFIXES_MAX = 8, ENDPOINTS_MAX = 16, WORDS_MAX = 64, INPUT_MAX = 4096 };

struct tool {
        sd_event *event;
        struct hold *hold;
        struct holding *holding;
        struct hold_translation translation;
        struct prefix cluster[PREFIXES_MAX];
        struct frontend frontends[FRONTENDS_MAX];
        struct holding_service services[FRONTENDS_MAX];
        struct prefix ranges[FRONTENDS_MAX][PREFIXES_MAX];
        struct prefix from[PREFIXES_MAX];
        size_t n_frontends, n_from;
        uint64_t timeout_ns;
        char line[INPUT_MAX];
        size_t length;
};

static void say(json_t *object)
{
        json_dumpf(object, stdout, JSON_COMPACT);
        putchar('\n');
        fflush(stdout);
        json_decref(object);
}

static void fail(const char *what, const char *word)
{
        fprintf(stderr, "translate: %s: %s\n", what, word);
        exit(1);
}

static void on_demand(struct holding *holding, const struct hold_demand *demand, void *userdata)
{
        char text[FLOW_TEXT_MAX];

        say(json_pack("{s:s, s:s, s:b}", "event", "demand", "flow", flow_format(&demand->flow, text), "local",
                      demand->from_this_host));
}

static void on_released(struct holding *holding, const struct flow *flow, uint64_t at_ns, void *userdata)
{
        char text[FLOW_TEXT_MAX];

        say(json_pack("{s:s, s:s}", "event", "released", "flow", flow_format(flow, text)));
}

static void on_answered(struct holding *holding, const struct flow *flow, uint64_t at_ns, void *userdata)
{
        char text[FLOW_TEXT_MAX];

        say(json_pack("{s:s, s:s}", "event", "answered", "flow", flow_format(flow, text)));
}

static void on_drained(struct holding *holding, void *userdata)
{
        say(json_pack("{s:s}", "event", "drained"));
}

static struct prefix read_prefix(const char *text)
{
        struct prefix prefix;

        if (prefix_parse(text, &prefix) < 0)
                fail("no prefix", text);
        return prefix;
}

static void add_frontend(struct tool *tool, char **words)
{
        struct holding_service *service = &tool->services[tool->n_frontends];
        struct prefix *ranges = tool->ranges[tool->n_frontends];

        if (tool->n_frontends == FRONTENDS_MAX || !words[0] || frontend_parse(words[0], &tool->frontends[tool->n_frontends]) < 0)
                fail("no frontend, or too many", words[0] ? words[0] : "");

        for (words++; *words; words++) {
                service->local |= strcmp(*words, "local") == 0;
                service->affinity |= strcmp(*words, "affinity") == 0;
                service->parking |= strcmp(*words, "parking") == 0;
                if (strcmp(*words, "masquerade") == 0)
                        service->masquerade = MASQUERADE_ALL;
                if (strcmp(*words, "as-it-is") == 0)
                        service->masquerade = MASQUERADE_NONE;
                if (strncmp(*words, "range=", 6) == 0 && service->n_source_ranges < PREFIXES_MAX)
                        ranges[service->n_source_ranges++] = read_prefix(*words + 6);
        }
        service->source_ranges = ranges;
        tool->n_frontends++;
}

static void start(struct tool *tool)
{
        struct holding_config config = {
                .name = "web",
                .frontends = tool->frontends,
                .n_frontends = tool->n_frontends,
                .services = tool->services,
                .from = tool->from,
                .n_from = tool->n_from,
                .max_held = 1024,
                .hold_timeout_ns = tool->timeout_ns,
        };

        if (holding_new(tool->hold, &config, NULL, &tool->holding) < 0 || holding_start(tool->holding) < 0)
                fail("cannot hold", "the frontends");
        hold_settle(tool->hold);
}

/* Says how long it took, which is the time until the first flows were on their way. */
static json_t *set_endpoints(struct tool *tool, char **words)
{
        struct holding_endpoint endpoints[ENDPOINTS_MAX];
        size_t n = 0, index = words[0] ? strtoul(words[0], NULL, 10) : 0;
        uint64_t began_ns;

        for (words++; words[0] && words[1] && words[2] && n < ENDPOINTS_MAX; words += 3, n++) {
                endpoints[n].on_this_node = strcmp(words[0], "here") == 0;
                endpoints[n].port = (uint16_t)strtoul(words[2], NULL, 10);
                if (address_parse(words[1], &endpoints[n].address) < 0)
                        fail("no address", words[1]);
        }
        began_ns = now_monotonic_ns();
        if (holding_set_endpoints(tool->holding, index, endpoints, n) < 0)
                fail("cannot set endpoints", "");
        return json_pack("{s:s, s:I}", "did", "endpoints", "microseconds",
                         (json_int_t)(now_monotonic_ns() - began_ns) / (json_int_t)NSEC_PER_USEC);
}

static void suspend(struct tool *tool)
{
        tool->hold = hold_suspend(tool->hold);
        sd_event_exit(tool->event, 0);
}

static json_t *state(struct tool *tool)
{
        struct hold_counter counters[HOLD_COUNTERS_MAX];
        size_t n = hold_counters(tool->hold, counters);
        json_t *counted = json_object();

        for (size_t i = 0; i < n; i++) {
                char name[64];

                snprintf(name, sizeof(name), "%s/%s", counters[i].verdict, counters[i].reason);
                json_object_set_new(counted, name, json_integer((json_int_t)counters[i].value));
        }
        return json_pack("{s:s, s:o, s:o, s:b}", "did", "state", "list", hold_list(tool->hold), "counters", counted, "attached",
                         hold_is_attached(tool->hold));
}

static void obey(struct tool *tool, char *line)
{
        char *words[WORDS_MAX + 1] = { NULL }, *rest = NULL;
        json_t *answer = NULL;
        size_t n = 0;

        for (char *word = strtok_r(line, " ", &rest); word && n < WORDS_MAX; word = strtok_r(NULL, " ", &rest))
                words[n++] = word;
        if (n == 0)
                return;

        if (strcmp(words[0], "from") == 0 && n == 2 && tool->n_from < PREFIXES_MAX)
                tool->from[tool->n_from++] = read_prefix(words[1]);
        else if (strcmp(words[0], "timeout") == 0 && n == 2)
                tool->timeout_ns = strtoul(words[1], NULL, 10) * NSEC_PER_MSEC;
        else if (strcmp(words[0], "frontend") == 0)
                add_frontend(tool, words + 1);
        else if (strcmp(words[0], "start") == 0)
                start(tool);
        else if (strcmp(words[0], "stop") == 0)
                tool->holding = holding_free(tool->holding);
        else if (strcmp(words[0], "endpoints") == 0)
                answer = set_endpoints(tool, words + 1);
        else if (strcmp(words[0], "expect") == 0)
                holding_expect_data_plane(tool->holding);
        else if (strcmp(words[0], "release") == 0 && n == 2)
                holding_release(tool->holding, strtoul(words[1], NULL, 10));
        else if (strcmp(words[0], "suspend") == 0)
                suspend(tool);
        else if (strcmp(words[0], "state") == 0)
                answer = state(tool);
        else
                fail("no command", words[0]);
        say(answer ? answer : json_pack("{s:s}", "did", words[0]));
}

static int on_input(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct tool *tool = userdata;
        ssize_t n = read(fd, tool->line + tool->length, sizeof(tool->line) - tool->length - 1);
        char *end;

        if (n <= 0)
                return sd_event_exit(tool->event, 0);

        tool->length += (size_t)n;
        tool->line[tool->length] = '\0';
        while ((end = strchr(tool->line, '\n'))) {
                size_t used = (size_t)(end - tool->line) + 1;

                *end = '\0';
                obey(tool, tool->line);
                memmove(tool->line, tool->line + used, tool->length - used + 1);
                tool->length -= used;
        }
        return 0;
}

int main(int argc, char **argv)
{
        static const struct hold_callbacks callbacks = {
                .demand = on_demand, .released = on_released, .answered = on_answered, .drained = on_drained
        };
        struct tool tool = { .timeout_ns = 60 * NSEC_PER_SEC };
        struct hold_config config = { .bpffs = argc > 1 ? argv[1] : "", .translation = &tool.translation };
        int r;

        tool.translation.cluster = tool.cluster;
        for (int i = 2; i < argc; i++) {
                tool.translation.wait |= strcmp(argv[i], "wait") == 0;
                tool.translation.masquerade_all |= strcmp(argv[i], "masquerade-all") == 0;
                if (strncmp(argv[i], "cluster=", 8) == 0 && tool.translation.n_cluster < PREFIXES_MAX)
                        tool.cluster[tool.translation.n_cluster++] = read_prefix(argv[i] + 8);
        }

        if (sd_event_default(&tool.event) < 0)
                return 1;
        config.event = tool.event;
        if (hold_new(&config, &callbacks, &tool, &tool.hold) < 0)
                return 1;
        if (sd_event_add_io(tool.event, NULL, STDIN_FILENO, EPOLLIN, on_input, &tool) < 0)
                return 1;

        r = sd_event_loop(tool.event);
        holding_free(tool.holding);
        hold_free(tool.hold);
        sd_event_unref(tool.event);
        return r < 0;
}
