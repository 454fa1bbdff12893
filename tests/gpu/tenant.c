/* SPDX-License-Identifier: Apache-2.0 */
/* Watches one cgroup to which devices are allocated, as an agent does a pod: tenant CGROUP UNUSED_AFTER [ALLOCATION...]. An allocation is
 * NAME=COUNT, NAME@BUS_ID or NAME#UUID. Every line on stdin is answered by a line of JSON, as GET /v1/gpus is. */
#include <jansson.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cgroup.h"
#include "base/time.h"
#include "gpu/watch.h"

struct program {
        sd_event *event;
        struct gpu_watch *watch;
        struct gpu_tenant *tenant;
};

static int on_input(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct program *program = userdata;
        char line[64];
        json_t *json;

        if (!fgets(line, sizeof(line), stdin))
                return sd_event_exit(program->event, 0);
        json = gpu_watch_json(program->watch);
        json_dumpf(json, stdout, 0);
        putchar('\n');
        fflush(stdout);
        json_decref(json);
        return 0;
}

static struct gpu_allocation allocation_parse(char *word)
{
        char *value = strpbrk(word, "=@#"), kind = value ? *value : '=';
        struct gpu_allocation allocation = { .name = word, .count = 1 };

        if (!value)
                return allocation;
        *value++ = '\0';
        if (kind == '=')
                allocation.count = (uint32_t)strtoul(value, NULL, 10);
        else if (kind == '@')
                allocation.bus_id = value;
        else
                allocation.uuid = value;
        return allocation;
}

static int begin(struct program *program, char **arguments, size_t n)
{
        struct gpu_allocation allocations[GPU_ALLOCATIONS_MAX];
        struct gpu_watch_config config = { .rules.factor = 1 };
        struct gpu_tenant_config tenant = { .name = "pod",
                                            .cgroup = arguments[0],
                                            .rules = { .window_ns = NSEC_PER_SEC, .factor = 1 } };
        _cleanup_(freep) char *root = NULL;
        int r;

        r = sd_event_new(&program->event);
        if (r >= 0)
                r = cgroup_find_root(&root);
        if (r >= 0)
                r = duration_parse(arguments[1], &config.rules.unused_after_ns);
        if (r < 0)
                return r;
        config.event = program->event;
        config.cgroup_root = root;
        r = gpu_watch_new(&config, &program->watch);
        if (r >= 0)
                r = gpu_tenant_new(program->watch, &tenant, &program->tenant);
        for (size_t i = 2; i < n; i++)
                allocations[i - 2] = allocation_parse(arguments[i]);
        if (r >= 0)
                r = gpu_tenant_set_allocations(program->tenant, allocations, n - 2);
        if (r >= 0)
                r = sd_event_add_io(program->event, NULL, STDIN_FILENO, EPOLLIN, on_input, program);
        return r;
}

int main(int argc, char **argv)
{
        struct program program = { 0 };
        int r = argc < 3 || argc - 3 > GPU_ALLOCATIONS_MAX ? -EINVAL : begin(&program, argv + 1, (size_t)argc - 1);

        if (r < 0)
                fprintf(stderr, "tenant: %s\n", strerror(-r));
        else
                r = sd_event_loop(program.event);
        gpu_tenant_free(program.tenant);
        gpu_watch_free(program.watch);
        sd_event_unref(program.event);
        return r < 0;
}
