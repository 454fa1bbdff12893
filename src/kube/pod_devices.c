/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/pod_devices.h"

#include <ctype.h>
#include <string.h>

/* Extended resources that are GPUs or parts of one, each unit a device node to open. Those that grant memory or time of a device beside
 * such a unit (gpu.intel.com/millicores) are left out: they are no further device. */
struct gpu_resource {
        const char *name;
        bool prefix; /* any that begins so */
        bool parts;  /* several units may be of one device */
};
static const struct gpu_resource gpu_resources[] = {
        { .name = "nvidia.com/gpu" },
        { .name = "nvidia.com/gpu.shared", .parts = true }, /* time-sliced, where that is renamed */
        { .name = "nvidia.com/mig-", .prefix = true, .parts = true },
        { .name = "amd.com/gpu" },
        { .name = "amd.com/gpu-", .prefix = true },
        { .name = "amd.com/spx_", .prefix = true, .parts = true }, /* "amd.com/cpx_nps4" */
        { .name = "amd.com/dpx_", .prefix = true, .parts = true },
        { .name = "amd.com/tpx_", .prefix = true, .parts = true },
        { .name = "amd.com/qpx_", .prefix = true, .parts = true },
        { .name = "amd.com/cpx_", .prefix = true, .parts = true },
        { .name = "gpu.intel.com/i915", .parts = true }, /* the plugin can share each device out */
        { .name = "gpu.intel.com/xe", .parts = true },
};

struct sum { /* of one resource over the containers, as the scheduler sums up */
        const char *resource;
        uint64_t containers;
        uint64_t sidecars; /* of the init containers before that go on running */
        uint64_t peak;     /* while an init container runs */
};

struct summing {
        struct field_reader *reader;
        const json_t *mappings; /* of extended resources that a claim provides */
        struct sum sums[KUBE_POD_GPU_REQUESTS_MAX];
        size_t n;
};

enum container_kind { CONTAINER_MAIN, CONTAINER_INIT, CONTAINER_SIDECAR };

static const struct gpu_resource *find_gpu(const char *resource)
{
        for (size_t i = 0; i < ELEMENTSOF(gpu_resources); i++) {
                const char *name = gpu_resources[i].name;

                if (gpu_resources[i].prefix ? strncmp(resource, name, strlen(name)) == 0 : strcmp(resource, name) == 0)
                        return &gpu_resources[i];
        }
        return NULL;
}

/* A quantity of something that cannot be divided: "2", and "1k" for what the server was given as "1000". */
static int count_parse(const char *text, uint64_t *ret_count)
{
        uint64_t count = 0;

        if (!text || !isdigit((unsigned char)*text))
                return -EINVAL;
        for (; isdigit((unsigned char)*text); text++)
                count = MIN(count * 10 + (uint64_t)(*text - '0'), (uint64_t)KUBE_POD_GPUS_MAX);
        if (strcmp(text, "k") == 0)
                count = MIN(count * 1000, (uint64_t)KUBE_POD_GPUS_MAX);
        else if (*text)
                return -EINVAL;
        *ret_count = count;
        return 0;
}

static bool is_provided_by_claim(struct summing *summing, const char *container, const char *resource)
{
        const char *field = "status.extendedResourceClaimStatus.requestMappings[]";
        const json_t *mapping;
        size_t i;

        json_array_foreach(summing->mappings, i, mapping) {
                const char *of = field_text(summing->reader, mapping, "containerName", field);
                const char *what = field_text(summing->reader, mapping, "resourceName", field);

                if (of && what && strcmp(of, container) == 0 && strcmp(what, resource) == 0)
                        return true;
        }
        return false;
}

static struct sum *find_sum(struct summing *summing, const char *resource)
{
        for (size_t i = 0; i < summing->n; i++)
                if (strcmp(summing->sums[i].resource, resource) == 0)
                        return &summing->sums[i];
        if (summing->n == KUBE_POD_GPU_REQUESTS_MAX) {
                field_fail(summing->reader, -E2BIG, "spec.containers[].resources.limits");
                return NULL;
        }
        summing->sums[summing->n] = (struct sum){ .resource = resource };
        return &summing->sums[summing->n++];
}

static void add_container(struct summing *summing, const json_t *container, enum container_kind kind)
{
        const char *field = "spec.containers[].resources.limits";
        const json_t *resources = field_object(summing->reader, container, "resources", "spec.containers[].resources");
        const json_t *limits = field_object(summing->reader, resources, "limits", field), *value;
        const char *name = field_text(summing->reader, container, "name", "spec.containers[].name"), *resource;

        json_object_foreach((json_t *)limits, resource, value) {
                struct sum *sum;
                uint64_t count;

                if (!find_gpu(resource) || is_provided_by_claim(summing, name ? name : "", resource))
                        continue;
                if (count_parse(json_string_value(value), &count) < 0) {
                        field_fail(summing->reader, -EBADMSG, field);
                        return;
                }
                sum = find_sum(summing, resource);
                if (!sum)
                        return;
                if (kind == CONTAINER_MAIN)
                        sum->containers += count;
                else if (kind == CONTAINER_SIDECAR)
                        sum->sidecars += count;
                sum->peak = MAX(sum->peak, sum->sidecars + (kind == CONTAINER_INIT ? count : 0));
        }
}

static void add_containers(struct summing *summing, const json_t *spec, const char *key, const char *field, bool init)
{
        const json_t *list = field_array(summing->reader, spec, key, field), *container;
        size_t i;

        if (json_array_size(list) > KUBE_POD_CONTAINERS_MAX) {
                field_fail(summing->reader, -E2BIG, field);
                return;
        }
        json_array_foreach(list, i, container) {
                const char *restart =
                        init ? field_text(summing->reader, container, "restartPolicy", "spec.initContainers[].restartPolicy")
                             : NULL;
                bool sidecar = restart && strcmp(restart, "Always") == 0;

                add_container(summing, container, !init ? CONTAINER_MAIN : sidecar ? CONTAINER_SIDECAR : CONTAINER_INIT);
        }
}

static void requests_keep(const struct summing *summing, struct kube_pod *pod)
{
        if (summing->n == 0)
                return;
        pod->gpu_requests = calloc(summing->n, sizeof(*pod->gpu_requests));
        if (!pod->gpu_requests) {
                field_fail(summing->reader, -ENOMEM, "spec.containers");
                return;
        }
        for (size_t i = 0; i < summing->n; i++) {
                const struct sum *sum = &summing->sums[i];
                uint64_t count = MAX(sum->containers + sum->sidecars, sum->peak);
                struct kube_gpu_request *request = &pod->gpu_requests[pod->n_gpu_requests];

                if (count == 0)
                        continue;
                request->resource = strdup(sum->resource);
                if (!request->resource) {
                        field_fail(summing->reader, -ENOMEM, "spec.containers");
                        return;
                }
                request->parts = find_gpu(sum->resource)->parts;
                request->count = (uint32_t)MIN(count, (uint64_t)KUBE_POD_GPUS_MAX);
                pod->n_gpu_requests++;
        }
}

static void requests_read(struct field_reader *reader, const json_t *spec, const json_t *extended, struct kube_pod *pod)
{
        const char *field = "status.extendedResourceClaimStatus.requestMappings";
        struct summing summing = { .reader = reader, .mappings = field_array(reader, extended, "requestMappings", field) };

        if (json_array_size(summing.mappings) > KUBE_POD_CONTAINERS_MAX) {
                field_fail(reader, -E2BIG, field);
                return;
        }
        add_containers(&summing, spec, "initContainers", "spec.initContainers", true);
        add_containers(&summing, spec, "containers", "spec.containers", false);
        requests_keep(&summing, pod);
}

/* The claim that was made of a template, or NULL while there is none. */
static const char *made_of_template(struct field_reader *reader, const json_t *statuses, const char *name)
{
        const json_t *status;
        size_t i;

        json_array_foreach(statuses, i, status) {
                const char *of = field_text(reader, status, "name", "status.resourceClaimStatuses[].name");

                if (of && name && strcmp(of, name) == 0)
                        return field_text(reader, status, "resourceClaimName", "status.resourceClaimStatuses[].resourceClaimName");
        }
        return NULL;
}

static void claim_keep(struct field_reader *reader, const char *name, struct kube_pod *pod)
{
        if (!name)
                return;
        pod->claims[pod->n_claims] = strdup(name);
        if (!pod->claims[pod->n_claims])
                field_fail(reader, -ENOMEM, "spec.resourceClaims");
        else
                pod->n_claims++;
}

static void claims_read(struct field_reader *reader, const json_t *spec, const json_t *status, const json_t *extended,
                        struct kube_pod *pod)
{
        const json_t *list = field_array(reader, spec, "resourceClaims", "spec.resourceClaims"), *claim;
        const json_t *statuses = field_array(reader, status, "resourceClaimStatuses", "status.resourceClaimStatuses");
        size_t i, count = json_array_size(list) + (extended ? 1 : 0);

        if (count > KUBE_POD_CLAIMS_MAX || json_array_size(statuses) > KUBE_POD_CLAIMS_MAX) {
                field_fail(reader, -E2BIG, "spec.resourceClaims");
                return;
        }
        if (count == 0)
                return;
        pod->claims = calloc(count, sizeof(*pod->claims));
        if (!pod->claims) {
                field_fail(reader, -ENOMEM, "spec.resourceClaims");
                return;
        }
        json_array_foreach(list, i, claim) {
                const char *name = field_text(reader, claim, "name", "spec.resourceClaims[].name");
                const char *own = field_text(reader, claim, "resourceClaimName", "spec.resourceClaims[].resourceClaimName");

                claim_keep(reader, own ? own : made_of_template(reader, statuses, name), pod);
        }
        claim_keep(reader,
                   field_text(reader, extended, "resourceClaimName", "status.extendedResourceClaimStatus.resourceClaimName"), pod);
}

void pod_devices_read(struct field_reader *reader, const json_t *spec, const json_t *status, struct kube_pod *pod)
{
        const json_t *extended = field_object(reader, status, "extendedResourceClaimStatus", "status.extendedResourceClaimStatus");

        requests_read(reader, spec, extended, pod);
        claims_read(reader, spec, status, extended, pod);
}

void pod_devices_done(struct kube_pod *pod)
{
        for (size_t i = 0; i < pod->n_gpu_requests; i++)
                free(pod->gpu_requests[i].resource);
        free(pod->gpu_requests);
        for (size_t i = 0; i < pod->n_claims; i++)
                free(pod->claims[i]);
        free(pod->claims);
}
