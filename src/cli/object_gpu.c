/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/table.h"

static const struct collection gpus = { "/v1/gpus", "the name of a device or workload" };

/* "3.2 GiB of 80.0 GiB", or "-". */
static void cell_memory(struct table *table, const json_t *device)
{
        double gib = 1024.0 * 1024 * 1024;

        if (member_number(device, "memory_total_bytes") > 0)
                table_cell(table, "%.1f of %.1f GiB", member_number(device, "memory_used_bytes") / gib,
                           member_number(device, "memory_total_bytes") / gib);
        else
                table_cell(table, "%s", "");
}

static void device_row(struct table *table, const json_t *device)
{
        char duration[DURATION_TEXT_MAX];

        table_cell(table, "%s", member_text(device, "name"));
        table_cell(table, "%s", member_text(device, "model"));
        if (json_is_number(json_object_get(device, "percent")))
                table_cell(table, "%lld%%", member_integer(device, "percent"));
        else
                table_cell(table, "%s", json_is_true(json_object_get(device, "mig")) ? "MIG" : "");
        cell_memory(table, device);
        if (member_number(device, "power_watts") > 0)
                table_cell(table, "%.0f W", member_number(device, "power_watts"));
        else
                table_cell(table, "%s", "");
        table_cell(table, "%s", member_text(device, "state"));
        table_cell(table, "%s", member_duration(device, "since_seconds", duration));
        cell_first_of(table, json_object_get(device, "workloads"), NULL);
}

static int gpu_list(struct cli *cli, char **arguments)
{
        static const char *const headers[] = { "DEVICE", "MODEL", "USED", "MEMORY", "POWER", "STATE", "FOR", "WORKLOAD" };
        static const struct listing listing = { "/v1/gpus", "devices", headers, ELEMENTSOF(headers), device_row };

        return show_list(cli, &listing);
}

static double wasted(const json_t *workload)
{
        return member_number(json_object_get(workload, "gpu_seconds"), "idle");
}

static int compare_wasted(const void *a, const void *b)
{
        double left = wasted(*(const json_t *const *)a), right = wasted(*(const json_t *const *)b);

        return (left < right) - (left > right);
}

static void workload_row(struct table *table, const json_t *workload)
{
        const json_t *sums = json_object_get(workload, "gpu_seconds"), *calls = json_object_get(workload, "calls");
        char duration[DURATION_TEXT_MAX];

        table_cell(table, "%s", member_text(workload, "name"));
        table_cell(table, "%s", member_text(workload, "command"));
        table_cell(table, "%s", member_text(workload, "state"));
        table_cell(table, "%lld", member_integer(workload, "open_devices"));
        table_cell(table, "%s", member_duration(workload, "idle_seconds", duration));
        table_cell(table, "%lld", member_integer(calls, "submissions"));
        table_cell(table, "%s", member_duration(sums, "allocated", duration));
        table_cell(table, "%s", member_duration(sums, "active", duration));
        table_cell(table, "%s", member_duration(sums, "idle", duration));
}

/* The answer with its workloads in the order of what they waste. */
static int get_sorted(struct cli *cli, json_t **ret_answer)
{
        _cleanup_(json_decrefp) json_t *answer = NULL;
        _cleanup_(freep) json_t **order = NULL;
        json_t *workloads, *sorted;
        size_t n;
        int r;

        r = client_get(cli, "/v1/gpus", &answer);
        if (r < 0)
                return r;
        workloads = json_object_get(answer, "workloads");
        n = json_array_size(workloads);
        order = calloc(n + 1, sizeof(*order));
        sorted = json_array();
        if (!order || !sorted) {
                json_decref(sorted);
                return cli_fail(cli, -ENOMEM, "out of memory");
        }
        for (size_t i = 0; i < n; i++)
                order[i] = json_array_get(workloads, i);
        qsort(order, n, sizeof(*order), compare_wasted);
        for (size_t i = 0; i < n; i++)
                json_array_append(sorted, order[i]);
        json_object_set_new(answer, "workloads", sorted);
        *ret_answer = TAKE_PTR(answer);
        return 0;
}

static int gpu_top(struct cli *cli, char **arguments)
{
        static const char *const headers[] = { "WORKLOAD",    "COMMAND",   "STATE",  "DEVICES", "IDLE FOR",
                                               "SUBMISSIONS", "ALLOCATED", "ACTIVE", "IDLE" };
        static const struct listing listing = { "/v1/gpus", "workloads", headers, ELEMENTSOF(headers), workload_row };
        _cleanup_(json_decrefp) json_t *answer = NULL;
        int r;

        r = get_sorted(cli, &answer);
        return r < 0 ? r : print_listing(cli, &listing, answer);
}

/* "allocation           nvidia.com/gpu: 2, 1 of them never opened: ..." a line, and "disagreement         ..." */
static void print_allocations(const json_t *answer)
{
        json_t *allocation, *text;
        size_t i;

        json_array_foreach(json_object_get(answer, "allocations"), i, allocation) {
                printf("%-20s %s: %lld", "allocation", member_text(allocation, "name"), member_integer(allocation, "count"));
                if (json_is_string(json_object_get(allocation, "device")))
                        printf(", %s", member_text(allocation, "device"));
                if (member_integer(allocation, "unopened") > 0)
                        printf(", %lld of them never opened: %s: %s", member_integer(allocation, "unopened"),
                               member_text(allocation, "state"), member_text(allocation, "reason"));
                putchar('\n');
        }
        json_array_foreach(json_object_get(answer, "disagreement"), i, text)
                printf("%-20s %s\n", "disagreement", json_string_value(text));
}

static bool has_lines_of_its_own(const char *name)
{
        return strcmp(name, "devices") == 0 || strcmp(name, "allocations") == 0 || strcmp(name, "disagreement") == 0;
}

/* A line a member that is no list; then a line an element of the workload's devices, of what is allocated to it, and of what differs. */
static int print_details(struct cli *cli, const json_t *answer)
{
        json_t *value, *use;
        const char *name;
        size_t i;

        json_object_foreach((json_t *)answer, name, value) {
                _cleanup_(freep) char *text = json_is_string(value) ? strdup(json_string_value(value))
                                                                    : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));

                if (!text)
                        return cli_fail(cli, -ENOMEM, "out of memory");
                if (has_lines_of_its_own(name))
                        continue;
                make_printable(text);
                printf("%-20s %s\n", name, *text ? text : "-");
        }
        json_array_foreach(json_object_get(answer, "devices"), i, use)
                printf("%-20s %s: %s: %s\n", "device", member_text(use, "device"), member_text(use, "state"),
                       member_text(use, "reason"));
        print_allocations(answer);
        return 0;
}

static int gpu_show(struct cli *cli, char **arguments)
{
        _cleanup_(freep) char *path = NULL;
        int r;

        r = client_path(cli, &gpus, arguments[0], "", &path);
        return r < 0 ? r : show(cli, path, print_details);
}

static int gpu_why(struct cli *cli, char **arguments)
{
        _cleanup_(freep) char *path = NULL;
        int r;

        r = client_path(cli, &gpus, arguments[0], "/why", &path);
        return r < 0 ? r : show(cli, path, print_text_member);
}

static const struct command commands[] = {
        { .name = "list", .help = "all devices, one a line", .run = gpu_list },
        { .name = "show", .arguments = "NAME", .help = "everything known about one device or workload", .run = gpu_show },
        { .name = "why", .arguments = "NAME", .help = "why it is in its state, in one paragraph", .run = gpu_why },
        { .name = "top", .help = "workloads with a device, those that waste most first", .run = gpu_top },
        { .name = NULL },
};

const struct object object_gpu = { .name = "gpu", .help = "who uses which GPU, and who only has one", .commands = commands };
