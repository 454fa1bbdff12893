/* SPDX-License-Identifier: Apache-2.0 */
/* What policies scale, with a client that the tests answer for: the reflectors are real. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "controller/target.h"
#include "controller/target_object.h"
#include "unit/kube_fake.h"

struct fixture {
        struct kube_client client;
        struct targets *targets;
        unsigned changes, replies;
        struct target *changed;
        int error;
        unsigned code;
        bool free_when_changed;
};

static void on_changed(struct target *target, void *userdata)
{
        struct fixture *fixture = userdata;

        fixture->changes++;
        fixture->changed = target;
        if (fixture->free_when_changed)
                target_free(target);
}

static void on_done(const struct kube_reply *reply, void *userdata)
{
        struct fixture *fixture = userdata;

        fixture->replies++;
        fixture->error = reply->error;
        fixture->code = reply->status.code;
}

static int setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        LIST_INIT(&fixture->client.requests);
        assert_int_equal(sd_event_new(&fixture->client.event), 0);
        assert_int_equal(targets_new(&fixture->client, on_changed, &fixture->targets), 0);
        *state = fixture;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;
        struct kube_client *client = &fixture->client;

        targets_free(fixture->targets);
        assert_true(LIST_EMPTY(&client->requests));
        sd_event_unref(client->event);
        free(fixture);
        return 0;
}

static struct target *target(struct fixture *fixture, const char *api_version, const char *kind, const char *name)
{
        const struct target_reference reference = { .api_version = (char *)api_version,
                                                    .kind = (char *)kind,
                                                    .name = (char *)name };
        struct target *made;

        assert_int_equal(target_new(fixture->targets, "shop", &reference, fixture, &made), 0);
        return made;
}

static struct target_state look(const struct target *target)
{
        struct target_state state;

        target_read(target, &state);
        return state;
}

#define DEPLOYMENT(version, replicas)                                                                                              \
        "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"web\",\"uid\":\"u1\",\"resourceVersion\":\"" version "\"},"              \
        "\"spec\":{\"replicas\":" replicas ",\"selector\":{\"matchLabels\":{\"app\":\"web\"}},\"template\":{"                      \
        "\"metadata\":{\"labels\":{\"app\":\"web\",\"tier\":\"a\"}},\"spec\":{\"containers\":[]}}},"                               \
        "\"status\":{\"readyReplicas\":1}}"

#define SCALE(version, replicas)                                                                                                   \
        "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"web\",\"resourceVersion\":\"" version                                    \
        "\"},\"spec\":{\"replicas\":" replicas                                                                                     \
        "},\"status\":{\"replicas\":1,\"selector\":\"crew=web,tier in (a,b),!old,size!=x\"}}"
#define WEB_SCALE "/apis/apps/v1/namespaces/shop/deployments/web/scale"

static void a_deployment_is_followed_by_its_watch_alone(void **state)
{
        struct fixture *fixture = *state;
        struct kube_client *client = &fixture->client;
        struct target *web = target(fixture, "apps/v1", "Deployment", "web");
        struct kube_request *watch;

        assert_false(look(web).known);
        assert_false(targets_are_stale(fixture->targets)); /* its kind is new: that keeps no other target awake */
        watch = await(client, "/apis/apps/v1/deployments");
        watch->callbacks.opened(watch->userdata);
        event(watch, "ADDED", DEPLOYMENT("7", "2"));
        assert_false(look(web).known);
        synced(watch);

        assert_true(look(web).known && look(web).exists && !look(web).stale);
        assert_false(targets_are_stale(fixture->targets));
        assert_int_equal(look(web).replicas, 2);
        assert_int_equal(look(web).ready, 1);
        assert_string_equal(look(web).selector, "app=web");
        assert_string_equal(look(web).uid, "u1");
        assert_string_equal(json_string_value(json_object_get(look(web).pod_labels, "tier")), "a");
        assert_null(look(web).problem);

        fixture->changes = 0;
        event(watch, "MODIFIED", DEPLOYMENT("8", "0"));
        assert_int_equal(fixture->changes, 1);
        assert_ptr_equal(fixture->changed, web);
        assert_int_equal(look(web).replicas, 0);
        event(watch, "DELETED", DEPLOYMENT("9", "0"));
        assert_int_equal(fixture->changes, 2);
        assert_true(look(web).known && !look(web).exists);
        target_free(web);
}

static const char *guard(const struct kube_request *patch)
{
        return json_string_value(json_object_get(json_object_get(patch->body, "metadata"), "resourceVersion"));
}

static void a_sleep_names_the_version_seen(void **state)
{
        struct fixture *fixture = *state;
        struct kube_client *client = &fixture->client;
        struct target *web = target(fixture, "apps/v1", "Deployment", "web");
        struct kube_request *watch = await(client, "/apis/apps/v1/deployments"), *patch;
        const char *scale = "/apis/apps/v1/namespaces/shop/deployments/web/scale";

        assert_int_equal(target_scale(web, 0, on_done, fixture), 0);
        assert_int_equal(fixture->replies, 0); /* never from within the call */
        run(client);
        assert_int_equal(fixture->replies, 1);
        assert_int_equal(fixture->error, -EAGAIN);

        watch->callbacks.opened(watch->userdata);
        event(watch, "ADDED", DEPLOYMENT("7", "2"));
        synced(watch);
        assert_int_equal(target_scale(web, 0, on_done, fixture), 0);
        patch = find(client, scale);
        assert_int_equal(patch->priority, KUBE_PRIORITY_WAKE);
        assert_string_equal(guard(patch), "7");
        answer(patch, 403, "{}");
        assert_int_equal(fixture->code, 403);
        assert_int_equal(fixture->replies, 2);
        target_free(web);
}

/* A Deployment of two replicas at version 7, as the watch shows it, and a request to have none. */
static struct target *target_put_to_zero(struct fixture *fixture, struct kube_request **ret_watch)
{
        struct kube_client *client = &fixture->client;
        struct target *web = target(fixture, "apps/v1", "Deployment", "web");

        *ret_watch = await(client, "/apis/apps/v1/deployments");
        (*ret_watch)->callbacks.opened((*ret_watch)->userdata);
        event(*ret_watch, "ADDED", DEPLOYMENT("7", "2"));
        synced(*ret_watch);
        assert_int_equal(target_scale(web, 0, on_done, fixture), 0);
        return web;
}

static void an_answer_is_believed_before_the_watch_shows_it(void **state)
{
        struct fixture *fixture = *state;
        struct kube_client *client = &fixture->client;
        struct kube_request *watch;
        struct target *web = target_put_to_zero(fixture, &watch);

        assert_true(look(web).in_doubt);
        assert_int_equal(find(client, WEB_SCALE)->deadline_ns, TARGET_SLEEP_DEADLINE_NS);
        answer(find(client, WEB_SCALE), 200, SCALE("8", "0"));
        assert_int_equal(fixture->code, 200);
        assert_int_equal(look(web).replicas, 0);
        assert_false(look(web).in_doubt);
        event(watch, "MODIFIED", DEPLOYMENT("8", "0"));
        event(watch, "MODIFIED", DEPLOYMENT("9", "3"));
        assert_int_equal(look(web).replicas, 3);
        target_free(web);
}

static void an_unclear_answer_to_a_sleep_is_followed_by_a_look(void **state)
{
        static const unsigned codes[] = { 409, 500, 504 };
        struct fixture *fixture = *state;
        struct kube_client *client = &fixture->client;
        struct kube_request *watch;

        for (size_t i = 0; i < ELEMENTSOF(codes); i++) {
                struct target *web = target_put_to_zero(fixture, &watch);

                fixture->replies = 0;
                answer(find(client, WEB_SCALE), codes[i], "\"who knows\"");
                assert_int_equal(fixture->replies, 0);
                assert_int_equal(find(client, WEB_SCALE)->verb, KUBE_GET);
                answer(find(client, WEB_SCALE), 200, SCALE("8", "0"));
                assert_int_equal(fixture->replies, 1);
                assert_int_equal(fixture->code, codes[i]);
                assert_int_equal(look(web).replicas, 0);
                assert_false(look(web).in_doubt);
                target_free(web);
                run(client);
        }
}

static void a_sleep_of_which_nothing_is_heard_stays_in_doubt_until_a_later_version(void **state)
{
        struct fixture *fixture = *state;
        struct kube_client *client = &fixture->client;
        struct kube_request *watch;
        struct target *web = target_put_to_zero(fixture, &watch);

        answer(find(client, WEB_SCALE), 504, "\"too late\"");
        answer(find(client, WEB_SCALE), 504, "\"too late\"");
        assert_int_equal(fixture->replies, 1);
        assert_true(look(web).in_doubt);
        assert_int_equal(look(web).replicas, 2);
        event(watch, "MODIFIED", DEPLOYMENT("8", "2"));
        assert_false(look(web).in_doubt);

        assert_int_equal(target_scale(web, 0, on_done, fixture), 0);
        answer(find(client, WEB_SCALE), 403, "\"forbidden\"");
        assert_false(look(web).in_doubt);
        target_free(web);
}

static void a_wake_scales_up_from_zero_and_keeps_what_others_set(void **state)
{
        struct fixture *fixture = *state;
        struct kube_client *client = &fixture->client;
        struct kube_request *watch;
        struct target *web = target_put_to_zero(fixture, &watch);

        answer(find(client, WEB_SCALE), 200, SCALE("8", "0"));
        assert_int_equal(target_scale(web, 3, on_done, fixture), 0);
        assert_int_equal(find(client, WEB_SCALE)->verb, KUBE_PATCH);
        assert_string_equal(guard(find(client, WEB_SCALE)), "8");
        answer(find(client, WEB_SCALE), 409, "\"conflict\"");
        assert_int_equal(find(client, WEB_SCALE)->verb, KUBE_GET);
        answer(find(client, WEB_SCALE), 200, SCALE("9", "0"));
        assert_string_equal(guard(find(client, WEB_SCALE)), "9"); /* something else was written */
        answer(find(client, WEB_SCALE), 409, "\"conflict\"");
        fixture->replies = 0;
        answer(find(client, WEB_SCALE), 200, SCALE("10", "7"));
        assert_null(find(client, WEB_SCALE)); /* somebody has scaled it */
        assert_int_equal(fixture->replies, 1);
        assert_int_equal(fixture->code, 200);
        assert_int_equal(look(web).replicas, 7);
        target_free(web);
}

static void a_change_ends_with_its_target(void **state)
{
        struct fixture *fixture = *state;
        struct kube_client *client = &fixture->client;
        struct target *web = target(fixture, "apps/v1", "Deployment", "web");

        assert_int_equal(target_scale(web, 1, on_done, fixture), 0);
        assert_int_equal(target_scale(web, 0, on_done, fixture), 0);
        target_free(web);
        run(client);
        assert_int_equal(fixture->replies, 0);
        assert_true(LIST_EMPTY(&client->requests));
}

static void a_job_is_suspended(void **state)
{
        struct fixture *fixture = *state;
        struct kube_client *client = &fixture->client;
        struct target *job = target(fixture, "batch/v1", "Job", "batch");
        struct kube_request *watch = await(client, "/apis/batch/v1/jobs"), *patch;

        watch->callbacks.opened(watch->userdata);
        event(watch, "ADDED",
              "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"batch\",\"uid\":\"u\",\"resourceVersion\":\"5\"},"
              "\"spec\":{\"suspend\":true}}");
        synced(watch);
        assert_int_equal(look(job).replicas, 0);
        event(watch, "MODIFIED",
              "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"batch\",\"uid\":\"u\",\"resourceVersion\":\"6\"},"
              "\"spec\":{},\"status\":{\"ready\":1}}");
        assert_int_equal(look(job).replicas, 1);
        assert_int_equal(look(job).ready, 1);

        assert_int_equal(target_scale(job, 0, on_done, fixture), 0);
        patch = find(client, "/apis/batch/v1/namespaces/shop/jobs/batch");
        assert_true(json_is_true(json_object_get(json_object_get(patch->body, "spec"), "suspend")));
        assert_string_equal(json_string_value(json_object_get(json_object_get(patch->body, "metadata"), "resourceVersion")), "6");
        answer(patch, 200,
               "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"batch\",\"uid\":\"u\",\"resourceVersion\":\"7\"},"
               "\"spec\":{\"suspend\":true}}");
        assert_int_equal(target_scale(job, 4, on_done, fixture), 0);
        patch = find(client, "/apis/batch/v1/namespaces/shop/jobs/batch");
        assert_true(json_is_false(json_object_get(json_object_get(patch->body, "spec"), "suspend")));
        answer(patch, 200, "{}");
        target_free(job);
}

#define RESOURCES                                                                                                                  \
        "{\"resources\":[{\"name\":\"crews/status\",\"kind\":\"Crew\",\"namespaced\":true},"                                       \
        "{\"name\":\"crews\",\"kind\":\"Crew\",\"namespaced\":true},{\"name\":\"crews/scale\",\"kind\":\"Scale\"},"                \
        "{\"name\":\"rocks\",\"kind\":\"Rock\",\"namespaced\":true},{\"name\":\"worlds\",\"kind\":\"World\",\"namespaced\":false}]}"
#define CREW(version)                                                                                                              \
        "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"web\",\"uid\":\"c1\",\"resourceVersion\":\"" version "\"},"              \
        "\"spec\":{\"size\":5,\"template\":{\"metadata\":{\"labels\":{\"no\":\"pods\"}}}}}"

static void any_kind_with_scale_is_found_and_asked_for_its_scale(void **state)
{
        struct fixture *fixture = *state;
        struct kube_client *client = &fixture->client;
        struct target *crew = target(fixture, "example.com/v1", "Crew", "web");
        const char *scale = "/apis/example.com/v1/namespaces/shop/crews/web/scale";
        struct kube_request *watch, *patch;

        answer(find(client, "/apis/example.com/v1"), 200, RESOURCES);
        assert_null(look(crew).problem);
        watch = await(client, "/apis/example.com/v1/crews");
        watch->callbacks.opened(watch->userdata);
        event(watch, "ADDED", CREW("7"));
        synced(watch);
        assert_false(look(crew).known); /* spec.size means nothing to us */
        answer(find(client, scale), 200, SCALE("7", "5"));

        assert_true(look(crew).known && look(crew).exists);
        assert_int_equal(look(crew).replicas, 5);
        assert_string_equal(look(crew).uid, "c1");
        assert_int_equal(json_object_size(look(crew).pod_labels), 1);
        assert_string_equal(json_string_value(json_object_get(look(crew).pod_labels, "crew")), "web");

        event(watch, "MODIFIED", CREW("8"));
        event(watch, "MODIFIED", CREW("9")); /* one request runs; another follows */
        answer(find(client, scale), 200, SCALE("8", "0"));
        answer(find(client, scale), 200, SCALE("9", "0"));
        assert_null(find(client, scale));
        assert_int_equal(look(crew).replicas, 0);

        assert_int_equal(target_scale(crew, 0, on_done, fixture), 0);
        patch = find(client, scale);
        assert_string_equal(json_string_value(json_object_get(json_object_get(patch->body, "metadata"), "resourceVersion")), "9");
        answer(patch, 200, "{}");

        event(watch, "MODIFIED", CREW("10"));
        answer(find(client, scale), 403, "\"forbidden\"");
        assert_true(look(crew).known && look(crew).stale && !look(crew).final); /* what was known before stays */
        assert_non_null(strstr(look(crew).problem, "replicas of Crew web cannot be read"));
        event(watch, "DELETED", CREW("11"));
        assert_true(look(crew).known && !look(crew).exists && !look(crew).problem);
        target_free(crew);
}

static void a_kind_that_cannot_be_scaled_says_why(void **state)
{
        struct fixture *fixture = *state;
        struct kube_client *client = &fixture->client;
        static const struct {
                const char *api_version, *kind, *path, *says;
                unsigned code;
        } cases[] = {
                { "example.com/v1", "Rock", "/apis/example.com/v1", "has no scale subresource", 200 },
                { "example.com/v1", "World", "/apis/example.com/v1", "is in no namespace", 200 },
                { "example.com/v1", "Crow", "/apis/example.com/v1", "example.com/v1 has no kind \"Crow\"", 200 },
                { "none.com/v1", "Crew", "/apis/none.com/v1", "the API server has no \"none.com/v1\"", 404 },
                { "v1", "Crew", "/api/v1", "it is not known what a Crew of v1 is", 403 },
                { "../v1", "Crew", NULL, "spec.target.apiVersion \"../v1\" is not one", 0 },
                { "a/b/c", "Crew", NULL, "spec.target.apiVersion \"a/b/c\" is not one", 0 },
                { "", "Crew", NULL, "spec.target.apiVersion \"\" is not one", 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                struct target *made = target(fixture, cases[i].api_version, cases[i].kind, "web");

                if (cases[i].path)
                        answer(find(client, cases[i].path), cases[i].code, RESOURCES);
                assert_non_null(look(made).problem);
                if (!strstr(look(made).problem, cases[i].says))
                        fail_msg("%s: %s", cases[i].kind, look(made).problem);
                assert_false(look(made).known);
                assert_int_equal(look(made).final, cases[i].code < 300 || cases[i].code == 404);
                assert_false(targets_are_stale(fixture->targets)); /* it keeps no other target awake */
                fixture->replies = 0;
                assert_int_equal(target_scale(made, 1, on_done, fixture), 0);
                run(client);
                assert_int_equal(fixture->replies, 1);
                assert_int_equal(fixture->error, -EOPNOTSUPP);
                target_free(made);
                run(client);
        }
}

static void a_kind_is_watched_once_and_as_long_as_it_has_targets(void **state)
{
        struct fixture *fixture = *state;
        struct kube_client *client = &fixture->client;
        struct target *one = target(fixture, "apps/v1", "Deployment", "web"), *same, *other;
        struct kube_request *watch = await(client, "/apis/apps/v1/deployments"), *next;

        same = target(fixture, "apps/v1", "Deployment", "web");
        other = target(fixture, "apps/v1", "Deployment", "other");
        run(client);
        next = LIST_NEXT(watch, of_all);
        assert_null(next);
        assert_ptr_equal(LIST_FIRST(&client->requests), watch);
        watch->callbacks.opened(watch->userdata);
        event(watch, "ADDED", DEPLOYMENT("7", "2"));
        synced(watch);
        assert_int_equal(look(one).replicas, 2);
        assert_int_equal(look(same).replicas, 2);
        assert_false(look(other).exists);

        target_free(one);
        target_free(other);
        run(client);
        assert_int_equal(look(same).replicas, 2);
        target_free(same);
        same = target(fixture, "apps/v1", "Deployment", "web"); /* at once: it stays */
        run(client);
        assert_ptr_equal(find(client, "/apis/apps/v1/deployments"), watch);
        target_free(same);
        run(client);
        assert_null(find(client, "/apis/apps/v1/deployments"));
}

static void a_target_may_be_freed_when_it_is_told_of(void **state)
{
        struct fixture *fixture = *state;
        struct kube_client *client = &fixture->client;

        target(fixture, "apps/v1", "Deployment", "web");
        target(fixture, "apps/v1", "Deployment", "web");
        fixture->free_when_changed = true;
        run(client);
        assert_int_equal(fixture->changes, 2);
        assert_true(LIST_EMPTY(&client->requests));
}

static void selectors_become_text(void **state)
{
        static const struct {
                const char *selector, *text;
        } cases[] = {
                { "{}", "" },
                { "{\"matchLabels\":{\"a\":\"b\",\"c\":\"\"}}", "a=b,c=" },
                { "{\"matchLabels\":{\"a\":\"b\"},\"matchExpressions\":[{\"key\":\"k\",\"operator\":\"In\",\"values\":[\"x\",\"y\"]},"
                  "{\"key\":\"l\",\"operator\":\"NotIn\",\"values\":[\"x\"]},{\"key\":\"m\",\"operator\":\"Exists\"},"
                  "{\"key\":\"n\",\"operator\":\"DoesNotExist\"}]}",
                  "a=b,k in (x,y),l notin (x),m,!n" },
                { "{\"matchExpressions\":[{\"key\":\"k\",\"operator\":\"Like\",\"values\":[\"x\"]}]}", NULL },
                { "{\"matchExpressions\":[{\"key\":\"k\",\"operator\":\"In\"}]}", NULL },
                { "{\"matchExpressions\":[{\"operator\":\"Exists\"}]}", NULL },
                { "{\"matchLabels\":{\"a\":1}}", NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                json_t *selector = json_loads(cases[i].selector, 0, NULL);
                _cleanup_(freep) char *text = NULL;

                assert_int_equal(label_selector_text(selector, &text), cases[i].text ? 0 : -EBADMSG);
                if (cases[i].text)
                        assert_string_equal(text, cases[i].text);
                json_decref(selector);
        }
}

static void what_keeps_pods_from_being_made_is_told(void **state)
{
        static const struct {
                enum target_form form;
                const char *conditions, *failure;
        } cases[] = {
                { TARGET_FORM_APPS, "[]", NULL },
                { TARGET_FORM_APPS,
                  "[{\"type\":\"Progressing\",\"status\":\"True\"},{\"type\":\"Available\",\"status\":\"False\"}]", NULL },
                { TARGET_FORM_APPS,
                  "[{\"type\":\"ReplicaFailure\",\"status\":\"True\",\"reason\":\"FailedCreate\",\"message\":\"exceeded quota: q\"},"
                  "{\"type\":\"Progressing\",\"status\":\"False\",\"reason\":\"ProgressDeadlineExceeded\"}]",
                  "FailedCreate: exceeded quota: q" },
                { TARGET_FORM_APPS, "[{\"type\":\"Progressing\",\"status\":\"False\",\"reason\":\"ProgressDeadlineExceeded\"}]",
                  "ProgressDeadlineExceeded" },
                { TARGET_FORM_JOB, "[{\"type\":\"Complete\",\"status\":\"True\"}]",
                  "the Job has ended, and runs no more pods: make a new one" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                json_t *source = json_pack("{s:{s:s},s:{},s:{s:o}}", "metadata", "name", "web", "spec", "status", "conditions",
                                           json_loads(cases[i].conditions, 0, NULL));
                _cleanup_(target_object_freep) struct target_object *object = NULL;

                assert_int_equal(target_object_read(source, cases[i].form, &object), 0);
                json_decref(source);
                assert_int_equal(object->replicas, 1); /* absent: the API's default, and not suspended */
                if (cases[i].failure)
                        assert_string_equal(object->failure, cases[i].failure);
                else
                        assert_null(object->failure);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_deployment_is_followed_by_its_watch_alone, setup, teardown),
                cmocka_unit_test_setup_teardown(a_sleep_names_the_version_seen, setup, teardown),
                cmocka_unit_test_setup_teardown(an_answer_is_believed_before_the_watch_shows_it, setup, teardown),
                cmocka_unit_test_setup_teardown(an_unclear_answer_to_a_sleep_is_followed_by_a_look, setup, teardown),
                cmocka_unit_test_setup_teardown(a_sleep_of_which_nothing_is_heard_stays_in_doubt_until_a_later_version, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_wake_scales_up_from_zero_and_keeps_what_others_set, setup, teardown),
                cmocka_unit_test_setup_teardown(a_change_ends_with_its_target, setup, teardown),
                cmocka_unit_test_setup_teardown(a_job_is_suspended, setup, teardown),
                cmocka_unit_test_setup_teardown(any_kind_with_scale_is_found_and_asked_for_its_scale, setup, teardown),
                cmocka_unit_test_setup_teardown(a_kind_that_cannot_be_scaled_says_why, setup, teardown),
                cmocka_unit_test_setup_teardown(a_kind_is_watched_once_and_as_long_as_it_has_targets, setup, teardown),
                cmocka_unit_test_setup_teardown(a_target_may_be_freed_when_it_is_told_of, setup, teardown),
                cmocka_unit_test(selectors_become_text),
                cmocka_unit_test(what_keeps_pods_from_being_made_is_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
