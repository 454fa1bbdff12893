/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/claims.h"

#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "kube/reflector.h"

#define DRA_API "/apis/resource.k8s.io/v1/"

struct claims {
        struct kube_client *client;
        char *node;
        void (*changed)(void *userdata);
        void *userdata;
        struct kube_reflector *claims, *slices; /* NULL until the first claim */
        sd_event_source *telling;               /* due when something has changed */
        bool told_problem;
};

static int on_telling(sd_event_source *source, void *userdata)
{
        struct claims *claims = userdata;

        claims->changed(claims->userdata);
        return 0;
}

int claims_new(const struct claims_config *config, struct claims **ret_claims)
{
        _cleanup_(claims_freep) struct claims *claims = calloc(1, sizeof(*claims));
        int r;

        if (!claims || text_replace(&claims->node, config->node) < 0)
                return -ENOMEM;
        claims->client = config->client;
        claims->changed = config->changed;
        claims->userdata = config->userdata;
        r = sd_event_add_defer(kube_client_event(claims->client), &claims->telling, on_telling, claims);
        if (r >= 0)
                r = sd_event_source_set_enabled(claims->telling, SD_EVENT_OFF);
        if (r < 0)
                return r;
        *ret_claims = TAKE_PTR(claims);
        return 0;
}

struct claims *claims_free(struct claims *claims)
{
        if (!claims)
                return NULL;
        kube_reflector_free(claims->claims);
        kube_reflector_free(claims->slices);
        sd_event_source_disable_unref(claims->telling);
        free(claims->node);
        free(claims);
        return NULL;
}

static void tell_unreadable(const char *kind, const char *key, int r, const char *field)
{
        if (r == -EBADMSG || r == -E2BIG)
                log_error("%s \"%s\": %s: %s; it is left alone", kind, key, field,
                          r == -E2BIG ? "has too many entries" : "is not as the API promises");
}

static int claim_read(const char *key, const json_t *json, void **ret_value, void *userdata)
{
        struct kube_resource_claim *claim;
        const char *field = NULL;
        int r = kube_resource_claim_read(json, &claim, &field);

        if (r < 0) {
                tell_unreadable("ResourceClaim", key, r, field);
                return r;
        }
        if (claim->n_devices == 0) { /* not allocated, or not any more */
                kube_resource_claim_free(claim);
                return -ENOENT;
        }
        *ret_value = claim;
        return 0;
}

static void claim_release(void *value, void *userdata)
{
        kube_resource_claim_free(value);
}

static int slice_read(const char *key, const json_t *json, void **ret_value, void *userdata)
{
        struct kube_resource_slice *slice;
        const char *field = NULL;
        int r = kube_resource_slice_read(json, &slice, &field);

        if (r < 0) {
                tell_unreadable("ResourceSlice", key, r, field);
                return r;
        }
        *ret_value = slice;
        return 0;
}

static void slice_release(void *value, void *userdata)
{
        kube_resource_slice_free(value);
}

static bool are_synced(const struct claims *claims)
{
        return claims->claims && kube_reflector_is_synced(claims->claims) && kube_reflector_is_synced(claims->slices);
}

/* Later, once for many changes: what is deleted is still in the view now. */
static void tell_later(struct claims *claims)
{
        if (are_synced(claims))
                sd_event_source_set_enabled(claims->telling, SD_EVENT_ONESHOT);
}

static void on_added(const char *key, void *value, void *userdata)
{
        tell_later(userdata);
}

static void on_modified(const char *key, void *old, void *value, void *userdata)
{
        tell_later(userdata);
}

static void on_synced(void *userdata)
{
        tell_later(userdata);
}

static int watch_claims(struct claims *claims)
{
        static const struct kube_reflector_callbacks callbacks = { .read = claim_read,
                                                                   .release = claim_release,
                                                                   .added = on_added,
                                                                   .modified = on_modified,
                                                                   .deleted = on_added,
                                                                   .synced = on_synced };
        static const struct kube_reflector_settings settings = { .resource = "resourceclaims", .path = DRA_API "resourceclaims" };

        return kube_reflector_new(claims->client, &settings, &callbacks, claims, NULL, &claims->claims);
}

static int watch_slices(struct claims *claims)
{
        static const struct kube_reflector_callbacks callbacks = { .read = slice_read,
                                                                   .release = slice_release,
                                                                   .added = on_added,
                                                                   .modified = on_modified,
                                                                   .deleted = on_added,
                                                                   .synced = on_synced };
        struct kube_reflector_settings settings = { .resource = "resourceslices", .path = DRA_API "resourceslices" };
        _cleanup_(freep) char *selector = NULL;

        if (asprintf(&selector, "spec.nodeName=%s", claims->node) < 0) {
                selector = NULL;
                return -ENOMEM;
        }
        settings.field_selector = selector;
        return kube_reflector_new(claims->client, &settings, &callbacks, claims, NULL, &claims->slices);
}

static int begin(struct claims *claims)
{
        int r;

        if (claims->claims)
                return 0;
        r = watch_slices(claims);
        if (r >= 0)
                r = watch_claims(claims);
        if (r < 0)
                claims->slices = kube_reflector_free(claims->slices);
        return r;
}

/* Most likely it may not read them. */
static void tell_problem(struct claims *claims)
{
        const char *problem = kube_reflector_problem(claims->claims);

        if (!*problem)
                problem = kube_reflector_problem(claims->slices);
        if (!*problem || claims->told_problem)
                return;
        log_warning("which devices ResourceClaims gave to pods is not known: %s", problem);
        claims->told_problem = true;
}

static const struct kube_resource_claim *find_claim(const char *namespace, const char *name, void *userdata)
{
        const struct claims *claims = userdata;
        char key[512];

        if ((size_t)snprintf(key, sizeof(key), "%s/%s", namespace, name) >= sizeof(key))
                return NULL;
        return kube_reflector_get(claims->claims, key);
}

struct collecting {
        const struct kube_resource_slice **slices;
        size_t n;
};

static int collect(const char *key, void *value, void *userdata)
{
        struct collecting *collecting = userdata;

        collecting->slices[collecting->n++] = value;
        return 0;
}

int claims_allocations(struct claims *claims, const struct kube_pod *pod, struct pod_allocations *ret_allocations)
{
        struct pod_allocations_view view = { .claim = find_claim, .userdata = claims };
        _cleanup_(freep) const struct kube_resource_slice **slices = NULL;
        struct collecting collecting = { 0 };
        int r;

        if (pod->n_claims > 0) {
                r = begin(claims);
                if (r < 0)
                        return r;
                if (!are_synced(claims)) {
                        tell_problem(claims);
                        return -EAGAIN;
                }
                slices = calloc(kube_reflector_count(claims->slices) + 1, sizeof(struct kube_resource_slice *));
                if (!slices)
                        return -ENOMEM;
                collecting.slices = slices;
                kube_reflector_each(claims->slices, collect, &collecting);
        }
        view.slices = slices;
        view.n_slices = collecting.n;
        return pod_allocations_read(pod, &view, ret_allocations);
}
