/* SPDX-License-Identifier: Apache-2.0 */
/* Runs readiness probes and prints a JSON object for each that has passed.
 *
 *   probe SETTINGS
 *
 * SETTINGS is a JSON object: type "http" or "tcp", address, port, and what a test wants of tls, path, host, headers (a list of lines),
 * timeout and delay (seconds), threshold, count (of equal probes). A line on standard input asks for the state of the first; its end
 * ends the program.
 */
#include <jansson.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/probe.h"
#include "base/time.h"

struct tool {
        sd_event *event;
        struct prober *prober;
        struct probe *probes[PROBES_MAX];
        char *headers[STATUS_HEADERS_MAX + 1];
        uint64_t begun_ns;
};

static void print(json_t *line)
{
        _cleanup_(freep) char *text = json_dumps(line, JSON_COMPACT);

        puts(text);
        fflush(stdout);
        json_decref(line);
}

static double seconds_since(uint64_t since_ns, uint64_t at_ns)
{
        return (double)(at_ns - since_ns) / (double)NSEC_PER_SEC;
}

static void on_passed(struct probe *probe, uint64_t at_ns, void *userdata)
{
        struct tool *tool = userdata;

        print(json_pack("{s:s,s:I,s:f,s:s}", "event", "passed", "attempts", (json_int_t)probe_attempts(probe), "seconds",
                        seconds_since(tool->begun_ns, at_ns), "problem", probe_problem(probe)));
        for (size_t i = 0; i < PROBES_MAX; i++)
                if (tool->probes[i] == probe)
                        tool->probes[i] = probe_free(probe);
}

static int on_input(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct tool *tool = userdata;
        char text[64];

        if (read(fd, text, sizeof(text)) <= 0)
                return sd_event_exit(tool->event, 0);
        if (tool->probes[0])
                print(json_pack("{s:s,s:I,s:s}", "event", "state", "attempts", (json_int_t)probe_attempts(tool->probes[0]),
                                "problem", probe_problem(tool->probes[0])));
        return 0;
}

static uint64_t nanoseconds(json_t *settings, const char *name, double otherwise)
{
        json_t *value = json_object_get(settings, name);

        return (uint64_t)((value ? json_number_value(value) : otherwise) * (double)NSEC_PER_SEC);
}

static char *text_of(json_t *settings, const char *name)
{
        return (char *)json_string_value(json_object_get(settings, name));
}

static struct status_probe read_probe(struct tool *tool, json_t *settings)
{
        json_t *headers = json_object_get(settings, "headers"), *threshold = json_object_get(settings, "threshold");

        for (size_t i = 0; i < json_array_size(headers) && i < STATUS_HEADERS_MAX; i++)
                tool->headers[i] = (char *)json_string_value(json_array_get(headers, i));
        return (struct status_probe){
                .type = strcmp(text_of(settings, "type"), "tcp") == 0 ? PROBE_TCP : PROBE_HTTP,
                .port = (uint16_t)json_integer_value(json_object_get(settings, "port")),
                .tls = json_is_true(json_object_get(settings, "tls")),
                .path = text_of(settings, "path"),
                .host = text_of(settings, "host"),
                .headers = tool->headers,
                .timeout_ns = nanoseconds(settings, "timeout", 1),
                .success_threshold = threshold ? (uint32_t)json_integer_value(threshold) : 1,
        };
}

static int start(struct tool *tool, json_t *settings)
{
        const struct probe_callbacks callbacks = { .passed = on_passed };
        const struct status_probe probe = read_probe(tool, settings);
        json_t *count = json_object_get(settings, "count");
        struct address address;
        int r = address_parse(text_of(settings, "address"), &address);

        tool->begun_ns = now_monotonic_ns();
        print(json_pack("{s:s,s:f}", "event", "began", "at", seconds_since(0, tool->begun_ns)));
        for (json_int_t i = 0; r >= 0 && i < (count ? json_integer_value(count) : 1); i++)
                r = probe_new(tool->prober, &probe, &address, tool->begun_ns + nanoseconds(settings, "delay", 0), &callbacks, tool,
                              &tool->probes[i]);
        return r;
}

static void run(struct tool *tool, json_t *settings)
{
        int r = sd_event_new(&tool->event);

        if (r >= 0)
                r = prober_new(tool->event, &tool->prober);
        if (r >= 0)
                r = sd_event_add_io(tool->event, NULL, STDIN_FILENO, EPOLLIN, on_input, tool);
        if (r >= 0)
                r = start(tool, settings);
        if (r < 0)
                print(json_pack("{s:s,s:s}", "event", "refused", "problem", strerror(-r)));
        else
                sd_event_loop(tool->event);
        for (size_t i = 0; i < PROBES_MAX; i++)
                probe_free(tool->probes[i]);
        prober_free(tool->prober);
        sd_event_unref(tool->event);
}

int main(int argc, char **argv)
{
        json_t *settings = argc == 2 ? json_loads(argv[1], 0, NULL) : NULL;
        struct tool tool = { 0 };

        if (!settings) {
                fputs("usage: probe SETTINGS\n", stderr);
                return 2;
        }
        run(&tool, settings);
        json_decref(settings);
        return 0;
}
