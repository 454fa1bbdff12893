/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/gpu.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/time.h"
#include "gpu/watch.h"

void answer_gpus(struct http_request *request, struct gpu_watch *watch)
{
        http_reply_json(request, 200, gpu_watch_json(watch));
}

/* An element of the answer's member @list by its name, borrowed; or NULL. */
static json_t *find_named(const json_t *answer, const char *list, const char *name)
{
        json_t *element;
        size_t i;

        json_array_foreach(json_object_get(answer, list), i, element) {
                const char *found = json_string_value(json_object_get(element, "name"));

                if (found && strcmp(found, name) == 0)
                        return element;
        }
        return NULL;
}

/* The device or workload that the path names; answers 404 when there is none. */
static json_t *named(struct http_request *request, struct gpu_watch *watch)
{
        const char *name = http_request_segment(request, 0);
        json_t *answer = gpu_watch_json(watch), *found = find_named(answer, "devices", name);

        if (!found)
                found = find_named(answer, "workloads", name);
        json_incref(found);
        json_decref(answer);
        if (!found)
                http_reply_error(request, 404, "no device and no workload with one is called \"%s\"", name);
        return found;
}

void answer_gpu(struct http_request *request, struct gpu_watch *watch)
{
        json_t *found = named(request, watch);

        if (found)
                http_reply_json(request, 200, found);
}

void answer_gpu_why(struct http_request *request, struct gpu_watch *watch)
{
        json_t *found = named(request, watch);
        char *text = NULL;

        if (!found)
                return;
        if (gpu_why_text(found, &text) < 0) {
                json_decref(found);
                http_reply_error(request, 500, "out of memory");
                return;
        }
        http_reply_json(request, 200,
                        json_pack("{sO, sO, ss, so}", "name", json_object_get(found, "name"), "state",
                                  json_object_get(found, "state"), "text", text, "object", found));
        free(text);
}

static const char *text_of(const json_t *object, const char *name)
{
        const char *text = json_string_value(json_object_get(object, name));

        return text && *text ? text : NULL;
}

static char *duration_of(const json_t *object, const char *name, char buffer[static DURATION_TEXT_MAX])
{
        return duration_format((uint64_t)(json_number_value(json_object_get(object, name)) * 1e9), buffer);
}

static void tell_sources(FILE *out, const json_t *object)
{
        static const struct {
                const char *name, *title;
        } titles[] = { { "calls", "the driver's calls" }, { "vendor", "NVML" }, { "kernel", "the kernel" } };
        json_t *source;
        size_t i;

        json_array_foreach(json_object_get(object, "sources"), i, source)
                for (size_t j = 0; j < ELEMENTSOF(titles); j++)
                        if (strcmp(titles[j].name, json_string_value(source)) == 0)
                                fprintf(out, "%s%s", i ? " and " : " What is known comes from ", titles[j].title);
        if (json_array_size(json_object_get(object, "sources")) > 0)
                fputc('.', out);
}

static void tell_devices(FILE *out, const json_t *workload)
{
        json_t *devices = json_object_get(workload, "devices"), *use;
        size_t i;

        if (json_array_size(devices) < 2)
                return;
        json_array_foreach(devices, i, use)
                fprintf(out, "%s%s is %s", i ? ", " : " Of its devices ", text_of(use, "device"), text_of(use, "state"));
        fputs("; it is idle only when all are.", out);
}

static void tell_disagreement(FILE *out, const json_t *object)
{
        const json_t *texts = json_object_get(object, "disagreement"), *text;
        size_t i;

        json_array_foreach(texts, i, text)
                fprintf(out, "%s%s", i ? "; " : " What is allocated is not what is open: ", json_string_value(text));
        if (json_array_size(texts) > 0)
                fputc('.', out);
}

static void tell_of_workload(FILE *out, const json_t *workload)
{
        const json_t *calls = json_object_get(workload, "calls"), *sums = json_object_get(workload, "gpu_seconds");
        char allocated[DURATION_TEXT_MAX], idle[DURATION_TEXT_MAX];

        tell_devices(out, workload);
        tell_disagreement(out, workload);
        if (json_is_object(calls))
                fprintf(out, " It has submitted work %lld times and %lld of its threads wait.",
                        (long long)json_integer_value(json_object_get(calls, "submissions")),
                        (long long)json_integer_value(json_object_get(calls, "waiting")));
        fprintf(out, " Since it is watched it has had devices for %s, and was idle for %s of that.",
                duration_of(sums, "allocated", allocated), duration_of(sums, "idle", idle));
}

static void tell_names(FILE *out, const json_t *device, const char *list, const char *begin)
{
        const json_t *names = json_object_get(device, list), *name;
        size_t i;

        json_array_foreach(names, i, name)
                fprintf(out, "%s%s", i ? ", " : begin, json_string_value(name));
        if (json_array_size(names) > 0)
                fputc('.', out);
}

static void tell_of_device(FILE *out, const json_t *device)
{
        tell_names(out, device, "workloads", " It is open in ");
        tell_names(out, device, "allocated_to", " It is allocated to ");
        tell_disagreement(out, device);
        if (json_integer_value(json_object_get(device, "other_processes")) > 0)
                fprintf(out, " %lld processes that are not watched have it open.",
                        (long long)json_integer_value(json_object_get(device, "other_processes")));
}

int gpu_why_text(const json_t *object, char **ret_text)
{
        char *text = NULL, since[DURATION_TEXT_MAX];
        const char *reason = text_of(object, "reason");
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return -ENOMEM;
        fprintf(out, "%s is %s", text_of(object, "name"), text_of(object, "state"));
        if (json_object_get(object, "since_seconds"))
                fprintf(out, " since %s", duration_of(object, "since_seconds", since));
        fprintf(out, ": %s.", reason ? reason : "nothing is known of it yet");
        tell_sources(out, object);
        if (json_object_get(object, "gpu_seconds"))
                tell_of_workload(out, object);
        else
                tell_of_device(out, object);
        if (fclose(out) != 0) {
                free(text);
                return -ENOMEM;
        }
        *ret_text = text;
        return 0;
}

/* Samples of one family are written together, so each family walks through all tenants. */
struct family {
        const char *name;
        double (*value)(const struct gpu_tenant_metrics *metrics); /* NaN: not known, and then there is no sample */
};

static double allocated_seconds(const struct gpu_tenant_metrics *metrics)
{
        return metrics->seconds.allocated;
}

static double active_seconds(const struct gpu_tenant_metrics *metrics)
{
        return metrics->seconds.active;
}

static double quiet_seconds(const struct gpu_tenant_metrics *metrics)
{
        return metrics->seconds.idle;
}

static double unknown_seconds(const struct gpu_tenant_metrics *metrics)
{
        return metrics->seconds.unknown;
}

static double idle_for(const struct gpu_tenant_metrics *metrics)
{
        return (double)metrics->verdict->idle_ns / NSEC_PER_SEC;
}

static double submissions(const struct gpu_tenant_metrics *metrics)
{
        return (double)metrics->submissions;
}

static double open_devices(const struct gpu_tenant_metrics *metrics)
{
        return metrics->devices;
}

static double allocated_devices(const struct gpu_tenant_metrics *metrics)
{
        return metrics->allocated < 0 ? NAN : metrics->allocated;
}

static double sources(const struct gpu_tenant_metrics *metrics)
{
        return metrics->verdict->n_sources;
}

static const struct family families[] = {
        { "lull_gpu_devices", open_devices },
        { "lull_gpu_allocated_devices", allocated_devices },
        { "lull_gpu_sources", sources },
        { "lull_gpu_idle_for_seconds", idle_for },
        { "lull_gpu_submissions_total", submissions },
        { "lull_gpu_allocated_seconds_total", allocated_seconds },
        { "lull_gpu_active_seconds_total", active_seconds },
        { "lull_gpu_idle_seconds_total", quiet_seconds },
        { "lull_gpu_unknown_seconds_total", unknown_seconds },
};

struct writing {
        struct metrics_writer *writer;
        const struct family *family;
};

static void write_value(const struct gpu_tenant_metrics *metrics, void *userdata)
{
        struct writing *writing = userdata;
        const char *labels[] = { "workload", metrics->name, NULL };

        double value = writing->family->value(metrics);

        if (!isnan(value))
                metrics_sample(writing->writer, labels, value);
}

static void write_states(const struct gpu_tenant_metrics *metrics, void *userdata)
{
        struct writing *writing = userdata;

        for (int state = 0; state < GPU_STATE_MAX; state++) {
                const char *labels[] = { "workload", metrics->name, "state", gpu_state_to_string(state), NULL };

                metrics_sample(writing->writer, labels, metrics->verdict->state == (enum gpu_state)state);
        }
}

static void write_device_family(struct metrics_writer *writer, const json_t *devices, const char *family, const char *member,
                                double scale)
{
        json_t *device;
        size_t i;

        metrics_family(writer, family);
        json_array_foreach((json_t *)devices, i, device) {
                const char *labels[] = { "device", text_of(device, "name"), NULL };
                const json_t *value = json_object_get(device, member);

                if (json_is_number(value))
                        metrics_sample(writer, labels, json_number_value(value) * scale);
        }
}

void write_gpu_families(struct metrics_writer *writer, struct gpu_watch *watch)
{
        struct writing writing = { .writer = writer };
        json_t *answer = gpu_watch_json(watch), *devices = json_object_get(answer, "devices");

        write_device_family(writer, devices, "lull_gpu_utilization_ratio", "percent", 0.01);
        write_device_family(writer, devices, "lull_gpu_memory_used_bytes", "memory_used_bytes", 1);
        write_device_family(writer, devices, "lull_gpu_power_watts", "power_watts", 1);
        json_decref(answer);

        metrics_family(writer, "lull_gpu_state");
        gpu_watch_metrics(watch, write_states, &writing);
        for (size_t i = 0; i < ELEMENTSOF(families); i++) {
                writing.family = &families[i];
                metrics_family(writer, families[i].name);
                gpu_watch_metrics(watch, write_value, &writing);
        }
}
