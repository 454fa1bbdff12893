/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "controller/conditions.h"
#include "controller/diagnose.h"
#include "unit/quoted_json.h"

#define POD(status) "{'metadata':{'name':'web-1'},'status':{'phase':'Pending'," status "}}"
#define WAITING(why, message)                                                                                                      \
        POD("'containerStatuses':[{'name':'web','restartCount':3,'state':{'waiting':{'reason':'" why "','message':'" message       \
            "'}},"                                                                                                                 \
            "'lastState':{'terminated':{'exitCode':7,'reason':'Error'}}}]")

static json_t *list_of(const char *pods)
{
        char text[4096];

        snprintf(text, sizeof(text), "{'items':[%s]}", pods);
        return json(text);
}

static void each_reason_is_found_and_told(void **state)
{
        static const struct {
                const char *pods, *failure, *reason, *words;
        } cases[] = {
                { WAITING("ErrImagePull", "not found"), NULL, "ImageUnavailable",
                  "pod \"web-1\", container \"web\", image \"\": its image cannot be pulled: not found" },
                { "{'metadata':{'name':'web-1'},'spec':{'initContainers':[{'name':'i','image':'first'}],'containers':[{'name':'x'},"
                  "{'name':'web','image':'lull.test/nothing:1'}]},'status':{'containerStatuses':[{'name':'x','ready':true},"
                  "{'name':'web','state':{'waiting':{'reason':'ErrImagePull'}}}]}}",
                  NULL, "ImageUnavailable", "image \"lull.test/nothing:1\"" },
                { WAITING("ImagePullBackOff", "Back-off"), NULL, "ImageUnavailable", "Back-off" },
                { WAITING("ErrImageNeverPull", "x"), NULL, "ImageUnavailable", "may not be pulled" },
                { WAITING("CreateContainerConfigError", "secret \\\"s\\\" not found"), NULL, "ContainerCannotStart",
                  "secret \"s\"" },
                { WAITING("CrashLoopBackOff", "back-off 10s"), NULL, "CrashLoop", "it keeps ending, last with status 7 (Error)" },
                { POD("'containerStatuses':[{'name':'web','state':{'terminated':{'exitCode':1,'reason':'Error'}}}]"), NULL,
                  "CrashLoop", "status 1" },
                { POD("'containerStatuses':[{'name':'web','state':{'waiting':{'reason':'CrashLoopBackOff'}},'lastState':{"
                      "'terminated':{'exitCode':128,'reason':'StartError','message':'exec: /bin/nothing: no such file'}}}]"),
                  NULL, "CrashLoop", "status 128 (StartError): exec: /bin/nothing: no such file" },
                { POD("'containerStatuses':[{'name':'web','ready':false,'state':{'running':{}},'lastState':{'terminated':{"
                      "'exitCode':2,'reason':'Error','message':'no database'}}}]"),
                  NULL, "CrashLoop", "no database" },
                { POD("'containerStatuses':[{'name':'web','ready':true,'state':{'running':{}},'lastState':{'terminated':{"
                      "'exitCode':2,'reason':'Error'}}}]"),
                  NULL, "NotReady", "not ready" },
                { POD("'initContainerStatuses':[{'name':'init','state':{'waiting':{'reason':'ErrImagePull','message':'m'}}}]"),
                  NULL, "ImageUnavailable", "container \"init\"" },
                { POD("'conditions':[{'type':'PodScheduled','status':'False','message':'0/2 nodes are available'}]"), NULL,
                  "Unschedulable", "fits on no node: 0/2 nodes" },
                { POD("'containerStatuses':[{'name':'web','state':{'running':{}}}]"), NULL, "NotReady",
                  "is Pending, but not ready" },
                { POD("'x':1") "," WAITING("ErrImagePull", "m"), NULL, "ImageUnavailable", "web-1" },
                { "", "pods \"web-2\" is forbidden: exceeded quota: q", "QuotaExceeded", "exceeded quota: q" },
                { "", "admission webhook denied it", "CannotCreatePods", "webhook" },
                { POD("'x':1"), "exceeded quota: q", "QuotaExceeded", "exceeded quota" },
                { "", NULL, "NoPods", "no pods" },
                { "{'metadata':{'name':'old','deletionTimestamp':'x'},'status':{}}", NULL, "NoPods", "no pods" },
                { "1,null,{'status':[]},{'status':{'containerStatuses':[null,{'state':1}]}}", NULL, "NotReady", "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                json_t *list = list_of(cases[i].pods);
                struct finding finding;

                diagnose(list, cases[i].failure, &finding);
                assert_string_equal(finding.reason, cases[i].reason);
                if (!strstr(finding.message, cases[i].words))
                        fail_msg("\"%s\" does not say \"%s\"", finding.message, cases[i].words);
                json_decref(list);
        }
}

static void no_list_is_no_crash(void **state)
{
        struct finding finding;

        diagnose(NULL, NULL, &finding);
        assert_string_equal(finding.reason, "NoPods");
}

/* What the API server gets must be UTF-8, or it gets nothing. */
static void a_finding_that_is_too_long_is_cut_at_a_character(void **state)
{
        for (size_t lead = 0; lead < 3; lead++) {
                char message[3 * FINDING_MESSAGE_MAX] = "", pod[4 * FINDING_MESSAGE_MAX];
                struct finding finding;
                json_t *list, *json;

                memset(message, 'x', lead);
                for (size_t i = lead; i + 3 < sizeof(message); i += 3)
                        memcpy(message + i, "\u20ac", 4);
                snprintf(pod, sizeof(pod),
                         POD("'containerStatuses':[{'name':'web','state':{'terminated':{'exitCode':1,'message':'%s'}}}]"), message);
                list = list_of(pod);
                diagnose(list, NULL, &finding);
                json = json_string(finding.message);
                assert_non_null(json);
                assert_true(strlen(finding.message) > FINDING_MESSAGE_MAX - 5);
                json_decref(json);
                json_decref(list);
        }
}

static void conditions_are_bounded_and_each_type_is_there_once(void **state)
{
        static const char *const types[] = { "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O", "P", "Q" };
        struct conditions conditions = { .n = 0 };

        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                conditions_add(&conditions, types[i], "R", "%zu", i);
        assert_int_equal(conditions.n, STATUS_CONDITIONS_MAX);
        conditions.n = 1;
        conditions_add(&conditions, "A", "R", "other");
        assert_int_equal(conditions.n, 1);
        assert_string_equal(conditions.entries[0].message, "0");
}

static void a_long_message_is_cut_at_a_character(void **state)
{
        for (size_t lead = 0; lead < 4; lead++) {
                struct conditions conditions = { .n = 0 };
                char text[2 * CONDITION_MESSAGE_MAX];
                json_t *json;

                memset(text, 'x', lead);
                for (size_t i = lead; i + 3 < sizeof(text); i += 3)
                        memcpy(text + i, "\u20ac", 4);
                conditions_add(&conditions, "A", "R", "%s", text);
                json = json_string(conditions.entries[0].message); /* NULL for what is not UTF-8 */
                assert_non_null(json);
                assert_true(strlen(conditions.entries[0].message) > CONDITION_MESSAGE_MAX - 5);
                json_decref(json);
        }
}

static void what_held_before_keeps_its_time(void **state)
{
        struct status_condition before[] = {
                { .type = (char *)"A", .reason = (char *)"R", .message = (char *)"m", .holds = true, .since_realtime_ns = 5 },
                { .type = (char *)"B", .since_realtime_ns = 6 }
        };
        struct scale_to_zero object = { .status = { .conditions = before, .n_conditions = 2 }, .metadata.generation = 9 };
        struct status_condition after[STATUS_CONDITIONS_MAX];
        struct conditions conditions = { .n = 0 };

        assert_true(conditions_keep(&conditions, &object.status, "A"));
        assert_false(conditions_keep(&conditions, &object.status, "B"));
        conditions_add(&conditions, "B", "R", "now");
        conditions_to_status(&conditions, &object, 100, after);
        assert_int_equal(after[0].since_realtime_ns, 5);
        assert_int_equal(after[1].since_realtime_ns, 100);
        assert_int_equal(after[1].generation, 9);
        assert_int_equal(conditions_news(&conditions, &object.status), 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_reason_is_found_and_told),
                cmocka_unit_test(no_list_is_no_crash),
                cmocka_unit_test(a_finding_that_is_too_long_is_cut_at_a_character),
                cmocka_unit_test(conditions_are_bounded_and_each_type_is_there_once),
                cmocka_unit_test(a_long_message_is_cut_at_a_character),
                cmocka_unit_test(what_held_before_keeps_its_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
