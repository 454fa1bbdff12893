/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever the bytes of a list: the same items and the same end however they are split; and what is taken for a list is one to the JSON
 * parser too, with the same items. */
#include <assert.h>
#include <stdint.h>

#include "kube/list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ITEM_MAX = 4096 };

static int keep(const json_t *item, void *userdata)
{
        assert(json_is_object(item));
        return json_array_append(userdata, (json_t *)item);
}

static int read_in_steps(const char *data, size_t size, size_t step, json_t *items)
{
        _cleanup_(kube_list_freep) struct kube_list *list = NULL;
        struct kube_list_head head;
        int r = 0;

        if (kube_list_new(ITEM_MAX, keep, items, &list) < 0)
                abort();
        for (size_t at = 0; at < size && r == 0; at += step ? step : size)
                r = kube_list_feed(list, data + at, step ? MIN(step, size - at) : size);
        if (r == 0)
                r = kube_list_end(list, &head);
        if (r == 0)
                assert(head.resource_version && (!head.continue_token || *head.continue_token));
        return r;
}

static void check_with_parser(const char *data, size_t size, json_t *items)
{
        json_t *document = json_loadb(data, size, JSON_ALLOW_NUL, NULL), *expected;

        assert(document);
        expected = json_object_get(document, "items");
        assert(json_is_null(expected) ? json_array_size(items) == 0 : json_equal(expected, items));
        json_decref(document);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        json_t *whole = json_array(), *bytes = json_array();
        int r = read_in_steps((const char *)data, size, 0, whole);

        assert(r == 0 || r == -EBADMSG || r == -EMSGSIZE || r == -EPIPE);
        assert(read_in_steps((const char *)data, size, 1, bytes) == r);
        assert(json_equal(whole, bytes));
        if (r == 0)
                check_with_parser((const char *)data, size, whole);
        json_decref(whole);
        json_decref(bytes);
        return 0;
}
