/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/target.h"

#include "controller/target_private.h"

static void flush_soon(struct targets *targets)
{
        sd_event_source_set_enabled(targets->flush, SD_EVENT_ONESHOT);
}

void target_mark_changed(struct target *target)
{
        if (target->changed)
                return;
        target->changed = true;
        TAILQ_INSERT_TAIL(&target->targets->changed_targets, target, of_changed);
        flush_soon(target->targets);
}

static void free_unused_kinds(struct targets *targets)
{
        struct watched_kind *kind = LIST_FIRST(&targets->kinds), *next;

        for (; kind; kind = next) {
                next = LIST_NEXT(kind, of_all);
                if (!kind->objects)
                        watched_kind_free(kind);
        }
}

static int on_flush(sd_event_source *source, void *userdata)
{
        struct targets *targets = userdata;
        struct target *target;

        while ((target = TAILQ_FIRST(&targets->changed_targets))) {
                TAILQ_REMOVE(&targets->changed_targets, target, of_changed);
                target->changed = false;
                targets->changed(target, target->userdata);
        }
        free_unused_kinds(targets);
        return 0;
}

int targets_new(struct kube_client *client, target_changed changed, struct targets **ret_targets)
{
        _cleanup_(targets_freep) struct targets *targets = calloc(1, sizeof(*targets));
        int r;

        if (!targets)
                return -ENOMEM;
        targets->client = client;
        targets->changed = changed;
        LIST_INIT(&targets->kinds);
        TAILQ_INIT(&targets->changed_targets);
        r = sd_event_add_defer(kube_client_event(client), &targets->flush, on_flush, targets);
        if (r >= 0)
                r = sd_event_source_set_enabled(targets->flush, SD_EVENT_OFF);
        if (r < 0)
                return r;
        *ret_targets = TAKE_PTR(targets);
        return 0;
}

struct targets *targets_free(struct targets *targets)
{
        if (!targets)
                return NULL;
        while (!LIST_EMPTY(&targets->kinds))
                watched_kind_free(LIST_FIRST(&targets->kinds));
        sd_event_source_disable_unref(targets->flush);
        free(targets);
        return NULL;
}

int target_new(struct targets *targets, const char *namespace, const struct target_reference *reference, void *userdata,
               struct target **ret_target)
{
        struct target *target = calloc(1, sizeof(*target));
        struct watched_kind *kind;
        int r;

        if (!target)
                return -ENOMEM;
        target->targets = targets;
        target->userdata = userdata;
        LIST_INIT(&target->changes);
        r = watched_kind_get(targets, reference, &kind);
        if (r >= 0)
                r = watched_object_get(kind, namespace, reference->name, &target->object);
        if (r < 0) {
                free(target);
                flush_soon(targets); /* the kind may be without objects */
                return r;
        }
        LIST_INSERT_HEAD(&target->object->targets, target, of_object);
        target_mark_changed(target);
        *ret_target = target;
        return 0;
}

struct target *target_free(struct target *target)
{
        if (!target)
                return NULL;
        target_changes_drop(target);
        if (target->changed)
                TAILQ_REMOVE(&target->targets->changed_targets, target, of_changed);
        LIST_REMOVE(target, of_object);
        if (LIST_EMPTY(&target->object->targets))
                watched_object_free(target->object);
        flush_soon(target->targets);
        free(target);
        return NULL;
}

static void scale_show(const struct watched_object *object, struct target_state *state)
{
        const struct kube_scale *scale = object->scale;

        state->problem = object->scale_problem;
        state->stale |= object->scale_problem != NULL;
        state->known = scale != NULL;
        if (!scale)
                return;
        state->replicas = scale->replicas;
        state->selector = scale->selector;
        if (state->pod_labels)
                return;
        state->pod_labels = object->scale_labels;
        state->labels_partial = true;
}

static void value_show(const struct target_object *value, struct target_state *state)
{
        state->exists = true;
        state->replicas = value->replicas;
        state->ready = value->ready;
        state->pod_labels = value->pod_labels;
        state->selector = value->selector;
        state->uid = value->uid;
        state->failure = value->failure;
}

void target_read(const struct target *target, struct target_state *ret_state)
{
        const struct watched_object *object = target->object;
        const struct watched_kind *kind = object->kind;
        const struct target_object *value = kind->reflector ? kube_reflector_get(kind->reflector, object->key) : NULL;
        struct target_state state = { .selector = "", .uid = "", .problem = kind->problem, .final = kind->problem && kind->final };
        struct seen_scale seen;

        state.stale = !kind->reflector || kube_reflector_is_stale(kind->reflector);
        if (kind->reflector && !kube_reflector_is_synced(kind->reflector) && *kube_reflector_problem(kind->reflector))
                state.problem = kube_reflector_problem(kind->reflector);
        state.known = kind->reflector && kube_reflector_is_synced(kind->reflector);
        if (value)
                value_show(value, &state);
        if (value && kind->form == TARGET_FORM_ANY)
                scale_show(object, &state);
        if (watched_object_seen(object, &seen))
                state.replicas = seen.replicas;
        state.in_doubt = watched_object_is_in_doubt(object);
        *ret_state = state;
}

bool targets_are_stale(const struct targets *targets)
{
        const struct watched_kind *kind;

        LIST_FOREACH(kind, &targets->kinds, of_all)
        if (kind->form != TARGET_FORM_ANY && kube_reflector_is_synced(kind->reflector) && kube_reflector_is_stale(kind->reflector))
                return true;
        return false;
}
