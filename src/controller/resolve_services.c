/* SPDX-License-Identifier: Apache-2.0 */
/* Which Services lead to the target's pods. */
#include <string.h>

#include "controller/resolve_private.h"

enum match { MATCH_NOT, MATCH_POSSIBLE, MATCH };

/* Labels that a pod gets for itself, or from its controller, beyond those of the template. */
static const char *const own_labels[] = {
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
        "pod-template-hash",
        "controller-revision-hash",
        "pod-template-generation",
        "batch.kubernetes.io/job-name",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
        "job-name",
        "controller-uid",
};

static bool is_own_label(const char *key)
{
        for (size_t i = 0; i < ELEMENTSOF(own_labels); i++)
                if (strcmp(own_labels[i], key) == 0)
                        return true;
        return false;
}

/* POSSIBLE: nothing speaks against it, but not all that the selector wants is known of the pods. */
static enum match selector_match(const json_t *selector, const json_t *labels, bool partial)
{
        enum match match = MATCH;
        const char *key;
        json_t *wanted;

        json_object_foreach((json_t *)selector, key, wanted) {
                const json_t *has = json_object_get(labels, key);

                if (has && !json_equal(has, wanted))
                        return MATCH_NOT;
                if (!has && !partial && !is_own_label(key))
                        return MATCH_NOT;
                if (!has)
                        match = MATCH_POSSIBLE;
        }
        return match;
}

static const json_t *pod_labels(const struct resolving *resolving)
{
        const struct resolve_input *input = resolving->input;

        if (input->pod_labels)
                return input->pod_labels;
        return input->target ? input->target->pod_labels : NULL;
}

static bool labels_are_partial(const struct resolving *resolving)
{
        return !resolving->input->pod_labels && resolving->input->target && resolving->input->target->labels_partial;
}

static const struct kube_service *service_find(const struct resolve_input *input, const char *name)
{
        for (size_t i = 0; i < input->n_services; i++)
                if (strcmp(input->services[i]->metadata.name, name) == 0)
                        return input->services[i];
        return NULL;
}

/* Returns 1 when @service can be held, 0 after noting why not, or -ENOMEM. */
static int check_supported(struct resolving *resolving, const struct kube_service *service, bool named)
{
        const char *name = service->metadata.name;
        int r = 1;

        if (service->external_name)
                r = resolve_problem_add(
                        resolving, PROBLEM_SERVICE_UNSUPPORTED, "ExternalName",
                        "Service %s is an alias of a host name (type ExternalName): no packet could be held for it; take "
                        "it out of spec.services",
                        name);
        else if (service->headless)
                r = resolve_problem_add(
                        resolving, PROBLEM_SERVICE_UNSUPPORTED, "Headless",
                        named ? "Service %s is headless (clusterIP: None): its clients look for pods, of which there are "
                                "none at zero replicas; name a Service with a cluster IP in spec.services instead"
                              : "Service %s is headless (clusterIP: None): its clients look for pods, of which there are "
                                "none at zero replicas; if it has no clients that should wake the target, name the other "
                                "Services in spec.services",
                        name);
        else if (!service->selector)
                r = resolve_problem_add(
                        resolving, PROBLEM_SERVICE_UNSUPPORTED, "NoSelector",
                        "Service %s has no selector, so that its endpoints are somebody else's; give it one that selects "
                        "the target's pods, or take it out of spec.services",
                        name);
        else
                return 1;
        return r < 0 ? r : 0;
}

static int service_use(struct resolving *resolving, const struct kube_service *service)
{
        const char *name = service->metadata.name;
        int r = 0;

        if (service->publish_not_ready)
                r = resolve_problem_add(
                        resolving, PROBLEM_NOT_READY_ADDRESSES, "PublishNotReady",
                        "Service %s has publishNotReadyAddresses: once awake, connections reach pods that are not ready; "
                        "first packets are held until one is",
                        name);
        if (r >= 0 && service->client_affinity)
                r = resolve_problem_add(
                        resolving, PROBLEM_AFFINITY, "ClientIP",
                        "Service %s has sessionAffinity ClientIP: the data plane alone knows which pod a client belongs "
                        "to, so first packets wait for it, about a second longer",
                        name);
        if (r >= 0)
                resolving->services[resolving->n_services++] = service;
        return r;
}

static int named_add(struct resolving *resolving, const char *name)
{
        const struct kube_service *service = service_find(resolving->input, name);
        const json_t *labels = pod_labels(resolving);
        int r;

        if (!service)
                return resolve_problem_add(resolving, PROBLEM_SERVICE_MISSING, "NotFound",
                                           "there is no Service \"%s\"; create it, or correct spec.services", name);
        r = check_supported(resolving, service, true);
        if (r <= 0)
                return r;
        if (labels && selector_match(service->selector, labels, labels_are_partial(resolving)) == MATCH_NOT)
                return resolve_problem_add(
                        resolving, PROBLEM_SERVICE_MISSING, "SelectsOtherPods",
                        "the selector of Service %s does not match the labels of the target's pods; correct one of "
                        "them, or take it out of spec.services",
                        name);
        return service_use(resolving, service);
}

static int named_each(struct resolving *resolving, char *const *names)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && names[i]; i++) {
                bool again = false;

                for (size_t j = 0; j < i; j++)
                        again = again || strcmp(names[i], names[j]) == 0;
                if (!again)
                        r = named_add(resolving, names[i]);
        }
        return r;
}

static int by_name(const void *a, const void *b)
{
        const struct kube_service *const *left = a, *const *right = b;

        return strcmp((*left)->metadata.name, (*right)->metadata.name);
}

/* Those that select the target's pods, by name. */
static size_t select_services(const struct resolve_input *input, const json_t *labels, const struct kube_service **ret_selecting)
{
        size_t n = 0;

        for (size_t i = 0; i < input->n_services; i++) {
                const struct kube_service *service = input->services[i];

                if (!service->external_name && service->selector && selector_match(service->selector, labels, false) == MATCH)
                        ret_selecting[n++] = service;
        }
        qsort(ret_selecting, n, sizeof(*ret_selecting), by_name);
        return n;
}

static int selecting_each(struct resolving *resolving)
{
        const struct resolve_input *input = resolving->input;
        _cleanup_(freep) const struct kube_service **selecting = calloc(input->n_services + 1, sizeof(*selecting));
        const json_t *labels = pod_labels(resolving);
        size_t n_selecting;
        int r = 0;

        if (!selecting)
                return -ENOMEM;

        if (!labels && resolving->resolution->n_problems > 0)
                return 0; /* the target's problem is why */
        if (!labels)
                return resolve_problem_add(resolving, PROBLEM_SERVICE_MISSING, "LabelsUnknown",
                                           "the labels of the target's pods are not known for its kind; name its Services in "
                                           "spec.services");
        n_selecting = select_services(input, labels, selecting);
        for (size_t i = 0; r >= 0 && i < n_selecting; i++) {
                r = check_supported(resolving, selecting[i], false);
                if (r > 0)
                        r = service_use(resolving, selecting[i]);
        }
        if (r >= 0 && n_selecting == 0)
                r = resolve_problem_add(
                        resolving, PROBLEM_SERVICE_MISSING, "NoneSelectsPods",
                        "no Service selects the target's pods, so that nothing could wake it; create one whose selector "
                        "matches their labels, or name one in spec.services");
        return r;
}

bool resolve_may_use(const struct policy *policy, const struct target_state *target, const struct kube_service *service)
{
        char *const *names = policy->cluster.services;

        for (size_t i = 0; names && names[i]; i++)
                if (strcmp(names[i], service->metadata.name) == 0)
                        return true;
        if (names)
                return false;
        if (!target->pod_labels)
                return true;
        return service->selector && selector_match(service->selector, target->pod_labels, false) == MATCH;
}

int resolve_services(struct resolving *resolving)
{
        const struct resolve_input *input = resolving->input;
        char *const *names = input->object->policy->cluster.services;
        int r;

        resolving->services = calloc(input->n_services + 1, sizeof(*resolving->services));
        if (!resolving->services)
                return -ENOMEM;

        r = names ? named_each(resolving, names) : selecting_each(resolving);
        qsort(resolving->services, resolving->n_services, sizeof(*resolving->services), by_name);
        return r;
}
