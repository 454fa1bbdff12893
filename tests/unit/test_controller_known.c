/* SPDX-License-Identifier: Apache-2.0 */
/* What a replica keeps of a policy as the server has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "controller/controller_private.h"
#include "unit/quoted_json.h"

static struct known_policy *read_policy(const char *spec)
{
        struct known_policy *known;
        const char *field = "";
        char text[512];
        json_t *object;

        snprintf(text, sizeof(text), "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"web\"},\"spec\":%s}", spec);
        object = json(text);
        assert_int_equal(known_policy_read(object, &known, &field), 0);
        json_decref(object);
        return known;
}

#define TARGET "'target':{'apiVersion':'apps/v1','kind':'StatefulSet','name':'db'}"

static void the_target_of_a_wrong_spec_is_known_where_it_can_be_read(void **state)
{
        static const struct {
                const char *spec, *target;
                bool is_right;
        } cases[] = {
                { "{" TARGET "}", "db", true },
                { "{" TARGET ",'idle':{'after':'soon'}}", "db", false },
                { "{" TARGET ",'idle':{'after':5},'wake':[]}", "db", false },
                { "{'target':{'kind':'StatefulSet','name':'db'},'idle':{'after':'soon'}}", NULL, false },
                { "{'target':7}", NULL, false },
                { "{}", NULL, false },
                { "null", NULL, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                struct known_policy *policy = read_policy(cases[i].spec);
                const struct target_reference *target = known_policy_target(policy);

                assert_int_equal(policy->object->policy != NULL, cases[i].is_right);
                if (cases[i].target)
                        assert_string_equal(target->name, cases[i].target);
                else
                        assert_null(target);
                known_policy_free(policy);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_target_of_a_wrong_spec_is_known_where_it_can_be_read),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
