/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/ignored.h"

#include <string.h>
#include <uthash.h>

#include "kube/label_selector.h"
#include "kube/patch.h"
#include "kube/reflector.h"

enum { ADDRESS_LENGTH = 128 };

struct pod_source { /* a watch */
        struct ignored *ignored;
        struct kube_reflector *pods; /* of struct kube_pod */
        unsigned users;
        UT_hash_handle hh;
        char key[]; /* "namespace|selector", of all namespaces "|selector" */
};

struct ignored {
        struct kube_client *client;
        struct pod_source *sources;
        struct kube_reflector *namespaces; /* of their labels (json_t); NULL until somebody selects some */
        void (*changed)(void *userdata);
        void *userdata;
};

struct ignored_entry {
        struct pod_source *source;
        struct label_selector *namespaces; /* NULL: the source has one namespace only */
};

struct ignored_policy {
        struct ignored *ignored;
        struct ignored_entry *entries;
        size_t n_entries;
        struct pod_selector *selectors; /* as they were followed */
};

static void on_change(const char *key, void *value, void *userdata)
{
        const struct ignored *ignored = userdata;

        ignored->changed(ignored->userdata);
}

static void on_synced(void *userdata)
{
        on_change(NULL, NULL, userdata);
}

static int pod_read(const char *key, const json_t *object, void **ret_value, void *userdata)
{
        struct kube_pod *pod;
        const char *field;
        int r = kube_pod_read(object, &pod, &field);

        if (r < 0)
                return r;
        if (pod->host_network || pod->n_addresses == 0 || strcmp(pod->phase, "Succeeded") == 0 ||
            strcmp(pod->phase, "Failed") == 0) {
                kube_pod_free(pod);
                return -ENOENT;
        }
        *ret_value = pod;
        return 0;
}

static void pod_release(void *value, void *userdata)
{
        kube_pod_free(value);
}

/* Pods' statuses change often, their addresses hardly ever. */
static void pod_modified(const char *key, void *old, void *value, void *userdata)
{
        const struct kube_pod *before = old, *after = value;

        if (before->n_addresses != after->n_addresses ||
            memcmp(before->addresses, after->addresses, after->n_addresses * sizeof(*after->addresses)) != 0)
                on_change(key, value, userdata);
}

static int namespace_read(const char *key, const json_t *object, void **ret_value, void *userdata)
{
        json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");

        *ret_value = labels ? json_deep_copy(labels) : json_object();
        return *ret_value ? 0 : -ENOMEM;
}

static void namespace_release(void *value, void *userdata)
{
        json_decref(value);
}

static void namespace_modified(const char *key, void *old, void *value, void *userdata)
{
        if (!json_equal(old, value))
                on_change(key, value, userdata);
}

int ignored_new(struct kube_client *client, void (*changed)(void *userdata), void *userdata, struct ignored **ret_ignored)
{
        struct ignored *ignored = calloc(1, sizeof(*ignored));

        if (!ignored)
                return -ENOMEM;
        *ignored = (struct ignored){ .client = client, .changed = changed, .userdata = userdata };
        *ret_ignored = ignored;
        return 0;
}

struct ignored *ignored_free(struct ignored *ignored)
{
        if (!ignored)
                return NULL;
        kube_reflector_free(ignored->namespaces);
        free(ignored);
        return NULL;
}

static int namespaces_watch(struct ignored *ignored)
{
        static const struct kube_reflector_callbacks callbacks = {
                .read = namespace_read,
                .release = namespace_release,
                .added = on_change,
                .modified = namespace_modified,
                .deleted = on_change,
                .synced = on_synced,
        };
        const struct kube_reflector_settings settings = { .resource = "namespaces", .path = "/api/v1/namespaces" };

        if (ignored->namespaces)
                return 0;
        return kube_reflector_new(ignored->client, &settings, &callbacks, ignored, NULL, &ignored->namespaces);
}

static int source_watch(struct pod_source *source, const char *namespace, const char *selector)
{
        static const struct kube_reflector_callbacks callbacks = {
                .read = pod_read,
                .release = pod_release,
                .added = on_change,
                .modified = pod_modified,
                .deleted = on_change,
                .synced = on_synced,
        };
        const struct kube_object collection = { "v1", "pods", namespace, NULL, NULL };
        struct kube_reflector_settings settings = { .resource = "pods", .label_selector = *selector ? selector : NULL };
        _cleanup_(freep) char *path = NULL;
        int r = kube_object_path(&collection, &path);

        if (r < 0)
                return r;
        settings.path = path;
        return kube_reflector_new(source->ignored->client, &settings, &callbacks, source->ignored, NULL, &source->pods);
}

static void source_leave(struct pod_source *source)
{
        if (!source || --source->users > 0)
                return;
        HASH_DEL(source->ignored->sources, source);
        kube_reflector_free(source->pods);
        free(source);
}

/* @namespace NULL: all. */
static int source_join(struct ignored *ignored, const char *namespace, const char *selector, struct pod_source **ret_source)
{
        _cleanup_(freep) char *key = NULL;
        struct pod_source *source;
        int r;

        if (asprintf(&key, "%s|%s", namespace ? namespace : "", selector) < 0) {
                key = NULL;
                return -ENOMEM;
        }
        HASH_FIND_STR(ignored->sources, key, source);
        if (!source) {
                source = calloc(1, sizeof(*source) + strlen(key) + 1);
                if (!source)
                        return -ENOMEM;
                source->ignored = ignored;
                strcpy(source->key, key);
                r = source_watch(source, namespace, selector);
                if (r < 0) {
                        free(source);
                        return r;
                }
                HASH_ADD_STR(ignored->sources, key, source);
        }
        source->users++;
        *ret_source = source;
        return 0;
}

struct ignored_policy *ignored_policy_free(struct ignored_policy *policy)
{
        if (!policy)
                return NULL;
        for (size_t i = 0; i < policy->n_entries; i++) {
                source_leave(policy->entries[i].source);
                label_selector_free(policy->entries[i].namespaces);
                free(policy->selectors[i].pods);
                free(policy->selectors[i].namespaces);
        }
        free(policy->entries);
        free(policy->selectors);
        free(policy);
        return NULL;
}
DEFINE_CLEANUP(struct ignored_policy, ignored_policy_free)

static bool same_text(const char *a, const char *b)
{
        return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_followed(const struct ignored_policy *followed, const struct cluster_settings *settings)
{
        if (!followed || followed->n_entries != settings->n_ignore)
                return false;
        for (size_t i = 0; i < settings->n_ignore; i++)
                if (!same_text(followed->selectors[i].pods, settings->ignore[i].pods) ||
                    !same_text(followed->selectors[i].namespaces, settings->ignore[i].namespaces))
                        return false;
        return true;
}

static int entry_make(struct ignored_policy *policy, const char *namespace, const struct pod_selector *selector)
{
        struct ignored_entry *entry = &policy->entries[policy->n_entries];
        struct pod_selector *copy = &policy->selectors[policy->n_entries];
        int r = 0;

        policy->n_entries++;
        copy->pods = strdup(selector->pods);
        if (selector->namespaces)
                copy->namespaces = strdup(selector->namespaces);
        if (!copy->pods || (selector->namespaces && !copy->namespaces))
                return -ENOMEM;
        if (selector->namespaces) {
                r = label_selector_parse(selector->namespaces, &entry->namespaces);
                if (r >= 0)
                        r = namespaces_watch(policy->ignored);
        }
        return r < 0 ? r : source_join(policy->ignored, selector->namespaces ? NULL : namespace, selector->pods, &entry->source);
}

int ignored_follow(struct ignored *ignored, const char *namespace, const struct policy *policy,
                   struct ignored_policy **policy_ignores)
{
        const struct cluster_settings *settings = &policy->cluster;
        _cleanup_(ignored_policy_freep) struct ignored_policy *followed = NULL;
        _cleanup_(ignored_policy_freep) _unused_ struct ignored_policy *before = NULL;
        int r;

        if (is_followed(*policy_ignores, settings))
                return 0;
        before = TAKE_PTR(*policy_ignores); /* left last, so that what both have goes on */
        if (settings->n_ignore == 0)
                return 0;
        followed = calloc(1, sizeof(*followed));
        if (!followed)
                return -ENOMEM;
        followed->ignored = ignored;
        followed->entries = calloc(settings->n_ignore, sizeof(*followed->entries));
        followed->selectors = calloc(settings->n_ignore, sizeof(*followed->selectors));
        if (!followed->entries || !followed->selectors)
                return -ENOMEM;
        for (size_t i = 0; i < settings->n_ignore; i++) {
                r = entry_make(followed, namespace, &settings->ignore[i]);
                if (r < 0)
                        return r;
        }
        *policy_ignores = TAKE_PTR(followed);
        return 0;
}

struct listing {
        const struct ignored_policy *policy;
        const struct ignored_entry *entry;
        struct prefix *prefixes;
        size_t n;
        bool too_many;
};

static int by_address(const void *a, const void *b)
{
        return memcmp(a, b, sizeof(struct address));
}

static void list_address(struct listing *listing, const struct address *address)
{
        const struct prefix prefix = { .address = *address, .length = ADDRESS_LENGTH };
        size_t at = 0;

        while (at < listing->n && by_address(&listing->prefixes[at], &prefix) < 0)
                at++;
        if (at < listing->n && by_address(&listing->prefixes[at], &prefix) == 0)
                return;
        if (listing->n == STATUS_IGNORED_MAX) {
                listing->too_many = true;
                if (at == listing->n)
                        return;
                listing->n--; /* the lowest are kept, whatever order they come in */
        }
        memmove(&listing->prefixes[at + 1], &listing->prefixes[at], (listing->n - at) * sizeof(prefix));
        listing->prefixes[at] = prefix;
        listing->n++;
}

static int list_pod(const char *key, void *value, void *userdata)
{
        struct listing *listing = userdata;
        const struct kube_pod *pod = value;
        const json_t *labels = NULL;

        if (listing->entry->namespaces) {
                labels = kube_reflector_get(listing->policy->ignored->namespaces, pod->metadata.namespace);
                if (!labels || !label_selector_matches(listing->entry->namespaces, labels))
                        return 0;
        }
        for (size_t i = 0; i < pod->n_addresses; i++)
                list_address(listing, &pod->addresses[i]);
        return 0;
}

int ignored_list(const struct ignored_policy *policy, struct prefix ret[static STATUS_IGNORED_MAX], size_t *ret_n)
{
        struct listing listing = { .policy = policy, .prefixes = ret };

        for (size_t i = 0; policy && i < policy->n_entries; i++) {
                const struct ignored_entry *entry = &policy->entries[i];

                if (!kube_reflector_is_synced(entry->source->pods) ||
                    (entry->namespaces && !kube_reflector_is_synced(policy->ignored->namespaces)))
                        return -EAGAIN;
                listing.entry = entry;
                kube_reflector_each(entry->source->pods, list_pod, &listing);
        }
        *ret_n = listing.n;
        return listing.too_many ? -ENOSPC : 0;
}
