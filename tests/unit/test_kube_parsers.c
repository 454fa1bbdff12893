/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and lists of objects, out of bytes that are split anywhere or are not what they should be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kube/list.h"
#include "kube/stream.h"

enum { SEEN_MAX = 16, OBJECT_MAX = 1 << 20 };

struct seen {
        char *objects[SEEN_MAX];
        size_t n_objects;
        int answer;
};

static int remember(const json_t *object, void *userdata)
{
        struct seen *seen = userdata;

        assert_true(seen->n_objects < SEEN_MAX);
        seen->objects[seen->n_objects++] = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
        return seen->answer;
}

static void forget(struct seen *seen)
{
        for (size_t i = 0; i < seen->n_objects; i++)
                free(seen->objects[i]);
}

static const char *const stream_objects[] = {
        "{\"type\":\"ADDED\"}",
        "{\"deep\":{\"list\":[{\"a\":[]},{}]},\"type\":\"}{\\\"][\\\\\"}",
        "{}",
        "{\"text\":\"\\u00e4\\u4e2d \xf0\x9f\x90\xb1\"}",
};
static const char stream_text[] =
        "{\"type\":\"ADDED\"}\n \t{\"type\": \"}{\\\"][\\\\\", \"deep\": {\"list\": [{\"a\":[]},{}]}}\r\n{}\n"
        "{\"text\":\"\\u00e4\\u4e2d \xf0\x9f\x90\xb1\"}\n";

static void stream_check(const char *const *pieces, const size_t *lengths, size_t n_pieces)
{
        _cleanup_(kube_stream_freep) struct kube_stream *stream = NULL;
        struct seen seen = { 0 };

        assert_int_equal(kube_stream_new(OBJECT_MAX, remember, &seen, &stream), 0);
        for (size_t i = 0; i < n_pieces; i++)
                assert_int_equal(kube_stream_feed(stream, pieces[i], lengths[i]), 0);
        assert_int_equal(kube_stream_end(stream), 0);

        assert_int_equal(seen.n_objects, 4);
        for (size_t i = 0; i < 3; i++)
                assert_string_equal(seen.objects[i], stream_objects[i]);
        assert_string_equal(seen.objects[3], "{\"text\":\"ä中 🐱\"}");
        forget(&seen);
}

static void a_stream_may_be_split_anywhere(void **state)
{
        size_t length = strlen(stream_text);

        for (size_t first = 0; first <= length; first++)
                for (size_t second = first; second <= length; second++)
                        stream_check((const char *const[]){ stream_text, stream_text + first, stream_text + second },
                                     (const size_t[]){ first, second - first, length - second }, 3);
}

static void a_stream_may_come_byte_by_byte(void **state)
{
        _cleanup_(kube_stream_freep) struct kube_stream *stream = NULL;
        struct seen seen = { 0 };

        assert_int_equal(kube_stream_new(OBJECT_MAX, remember, &seen, &stream), 0);
        for (const char *byte = stream_text; *byte; byte++)
                assert_int_equal(kube_stream_feed(stream, byte, 1), 0);
        assert_int_equal(seen.n_objects, 4);
        forget(&seen);
}

static void a_stream_that_ends_within_an_object_is_broken_off(void **state)
{
        const char *object = stream_objects[1];

        for (size_t length = 1; length < strlen(object); length++) {
                _cleanup_(kube_stream_freep) struct kube_stream *stream = NULL;
                struct seen seen = { 0 };

                assert_int_equal(kube_stream_new(OBJECT_MAX, remember, &seen, &stream), 0);
                assert_int_equal(kube_stream_feed(stream, object, length), 0);
                assert_int_equal(kube_stream_end(stream), -EPIPE);
                assert_int_equal(seen.n_objects, 0);
        }
}

/* Also with NULs in it. */
#define TEXT(text) { text, sizeof(text) - 1 }

static void what_is_no_stream_of_objects_is_refused(void **state)
{
        static const struct {
                const char *text;
                size_t length;
        } rows[] = {
                TEXT("garbage"),
                TEXT("[]"),
                TEXT("\"text\""),
                TEXT("1"),
                TEXT("}"),
                TEXT("]"),
                TEXT("{}}"),
                TEXT("{},{}"),
                TEXT("{]"),
                TEXT("{\"a\":1,}"),
                TEXT("{\"a\" 1}"),
                TEXT("{\"a\":[1,2}}"),
                TEXT("{\"a\":\"\xff\"}"),
                TEXT("{\"a\":\"\xc3(\"}"),
                TEXT("{\"a\":\"\xed\xa0\x80\"}"),
                TEXT("{\"a\":\"\\ud800\"}"),
                TEXT("{\"a\":\"\n\"}"),
                TEXT("{\"a\":nul}"),
                TEXT("{\"a\":1e999999}"),
                TEXT("\0{}"),
                TEXT("{\"a\":\"\0\"}"),
                TEXT("\xef\xbb\xbf{}"),
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kube_stream_freep) struct kube_stream *stream = NULL;
                struct seen seen = { 0 };

                assert_int_equal(kube_stream_new(OBJECT_MAX, remember, &seen, &stream), 0);
                if (kube_stream_feed(stream, rows[i].text, rows[i].length) != -EBADMSG)
                        fail_msg("row %zu was not refused: %s", i, rows[i].text);
                assert_int_equal(kube_stream_feed(stream, "{}", 2), -EBADMSG);
                assert_int_equal(kube_stream_end(stream), -EBADMSG);
                forget(&seen);
        }
}

static void an_object_past_the_bound_is_refused_before_it_is_whole(void **state)
{
        _cleanup_(kube_stream_freep) struct kube_stream *stream = NULL;
        struct seen seen = { 0 };
        int r = 0;

        assert_int_equal(kube_stream_new(1000, remember, &seen, &stream), 0);
        r = kube_stream_feed(stream, "{\"a\":\"", 6);
        for (size_t i = 0; i < 994 && r == 0; i++)
                r = kube_stream_feed(stream, "x", 1);
        assert_int_equal(r, 0);
        assert_int_equal(kube_stream_feed(stream, "x", 1), -EMSGSIZE);
}

static void an_object_of_a_megabyte_and_a_half_is_read(void **state)
{
        enum { LENGTH = 1500000, DEPTH = 200 };
        _cleanup_(kube_stream_freep) struct kube_stream *stream = NULL;
        _cleanup_(freep) char *text = malloc(LENGTH);
        struct seen seen = { 0 };
        size_t used = 0;

        for (; used < DEPTH * 5;)
                used += (size_t)sprintf(text + used, "{\"a\":");
        text[used++] = '"';
        memset(text + used, 'x', LENGTH - used);
        text[LENGTH - DEPTH - 1] = '"';
        memset(text + LENGTH - DEPTH, '}', DEPTH);

        assert_int_equal(kube_stream_new(2 * LENGTH, remember, &seen, &stream), 0);
        for (size_t at = 0; at < LENGTH; at += 16384)
                assert_int_equal(kube_stream_feed(stream, text + at, MIN(LENGTH - at, (size_t)16384)), 0);
        assert_int_equal(seen.n_objects, 1);
        assert_int_equal(strlen(seen.objects[0]), LENGTH);
        forget(&seen);
}

static void nesting_is_bounded(void **state)
{
        _cleanup_(kube_stream_freep) struct kube_stream *stream = NULL;
        struct seen seen = { 0 };
        int r = 0;

        assert_int_equal(kube_stream_new(OBJECT_MAX, remember, &seen, &stream), 0);
        r = kube_stream_feed(stream, "{\"a\":", 5);
        for (size_t i = 0; i < 5000 && r == 0; i++)
                r = kube_stream_feed(stream, "[", 1);
        for (size_t i = 0; i < 5000 && r == 0; i++)
                r = kube_stream_feed(stream, "]", 1);
        if (r == 0)
                r = kube_stream_feed(stream, "}", 1);
        assert_int_equal(r, -EBADMSG);
}

static void a_callback_that_fails_ends_the_stream(void **state)
{
        _cleanup_(kube_stream_freep) struct kube_stream *stream = NULL;
        struct seen seen = { .answer = -ECANCELED };

        assert_int_equal(kube_stream_new(OBJECT_MAX, remember, &seen, &stream), 0);
        assert_int_equal(kube_stream_feed(stream, "{}{}{}", 6), -ECANCELED);
        assert_int_equal(seen.n_objects, 1);
        forget(&seen);
}

static const char list_text[] =
        "{\"kind\": \"items\", \"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"42\",\"continue\":\"to\\\"ken\","
        "\"remainingItemCount\":7, \"items\": [1]},\"items\" : [ {\"a\":\"}],[\"} , {\"b\":[[{}]]},{}\n]}\n";

static void list_check(size_t first, size_t second)
{
        _cleanup_(kube_list_freep) struct kube_list *list = NULL;
        struct kube_list_head head;
        struct seen seen = { 0 };
        size_t length = strlen(list_text);

        assert_int_equal(kube_list_new(OBJECT_MAX, remember, &seen, &list), 0);
        assert_int_equal(kube_list_feed(list, list_text, first), 0);
        assert_int_equal(kube_list_feed(list, list_text + first, second - first), 0);
        assert_int_equal(kube_list_feed(list, list_text + second, length - second), 0);
        assert_int_equal(kube_list_end(list, &head), 0);

        assert_string_equal(head.resource_version, "42");
        assert_string_equal(head.continue_token, "to\"ken");
        assert_int_equal(head.remaining, 7);
        assert_int_equal(seen.n_objects, 3);
        assert_string_equal(seen.objects[0], "{\"a\":\"}],[\"}");
        assert_string_equal(seen.objects[1], "{\"b\":[[{}]]}");
        assert_string_equal(seen.objects[2], "{}");
        forget(&seen);
}

static void a_list_may_be_split_anywhere(void **state)
{
        size_t length = strlen(list_text);

        for (size_t first = 0; first <= length; first++)
                for (size_t second = first; second <= length; second++)
                        list_check(first, second);
}

static int list_read(const char *text, size_t item_max, struct seen *seen, struct kube_list_head *ret_head)
{
        struct kube_list *list = NULL;
        int r;

        assert_int_equal(kube_list_new(item_max, remember, seen, &list), 0);
        r = kube_list_feed(list, text, strlen(text));
        if (r >= 0)
                r = kube_list_end(list, ret_head);
        kube_list_free(list);
        return r;
}

static void what_is_no_list_is_refused(void **state)
{
        static const struct {
                const char *text;
                int expected;
        } rows[] = {
                { "", -EPIPE },
                { "  \n", -EPIPE },
                { "[]", -EBADMSG },
                { "nothing", -EBADMSG },
                { "{}", -EBADMSG },
                { "{\"items\":[]}", -EBADMSG },
                { "{\"metadata\":{},\"items\":[]}", -EBADMSG },
                { "{\"metadata\":{\"resourceVersion\":1},\"items\":[]}", -EBADMSG },
                { "{\"metadata\":{\"resourceVersion\":\"1\"}}", -EBADMSG },
                { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":{}}", -EBADMSG },
                { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]", -EPIPE },
                { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[", -EPIPE },
                { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{}", -EPIPE },
                { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{},]}", -EBADMSG },
                { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[,{}]}", -EBADMSG },
                { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{}{}]}", -EBADMSG },
                { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{},,{}]}", -EBADMSG },
                { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[1]}", -EBADMSG },
                { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[[]]}", -EBADMSG },
                { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{\"a\"}]}", -EBADMSG },
                { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{]]}", -EBADMSG },
                { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[],\"items\":[]}", -EBADMSG },
                { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}{}", -EBADMSG },
                { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}]", -EBADMSG },
                { "{\"metadata\":{\"resourceVersion\":\"1\"} \"items\":[]}", -EBADMSG },
                { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\" []}", -EBADMSG },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                struct kube_list_head head = { 0 };
                struct seen seen = { 0 };
                int r = list_read(rows[i].text, OBJECT_MAX, &seen, &head);

                if (r != rows[i].expected)
                        fail_msg("row %zu: %d instead of %d: %s", i, r, rows[i].expected, rows[i].text);
                assert_null(head.resource_version);
                forget(&seen);
        }
}

static void a_list_within_the_items_member_is_not_the_items(void **state)
{
        struct kube_list_head head = { 0 };
        struct seen seen = { 0 };

        assert_int_equal(list_read("{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":{\"x\":[{}]}}", OBJECT_MAX, &seen, &head),
                         -EBADMSG);
        assert_int_equal(seen.n_objects, 0);
}

static void a_list_without_items_is_a_list(void **state)
{
        static const char *const rows[] = {
                "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}",
                "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[ \n]} ",
                "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":null}",
                "{\"items\":[],\"metadata\":{\"resourceVersion\":\"1\",\"continue\":\"\"}}",
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                struct kube_list_head head = { 0 };
                struct seen seen = { 0 };

                assert_int_equal(list_read(rows[i], OBJECT_MAX, &seen, &head), 0);
                assert_null(head.continue_token);
                assert_int_equal(head.remaining, -1);
                assert_int_equal(seen.n_objects, 0);
        }
}

static void an_item_and_what_is_around_items_are_bounded(void **state)
{
        _cleanup_(freep) char *frame = calloc(1, KUBE_LIST_FRAME_MAX + 64);
        struct kube_list_head head = { 0 };
        struct seen seen = { 0 };

        assert_int_equal(list_read("{\"items\":[{\"a\":\"12345678\"}]}", 10, &seen, &head), -EMSGSIZE);
        assert_int_equal(seen.n_objects, 0);

        strcpy(frame, "{\"a\":\"");
        memset(frame + 6, 'x', KUBE_LIST_FRAME_MAX);
        assert_int_equal(list_read(frame, OBJECT_MAX, &seen, &head), -EMSGSIZE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_stream_may_be_split_anywhere),
                cmocka_unit_test(a_stream_may_come_byte_by_byte),
                cmocka_unit_test(a_stream_that_ends_within_an_object_is_broken_off),
                cmocka_unit_test(what_is_no_stream_of_objects_is_refused),
                cmocka_unit_test(an_object_past_the_bound_is_refused_before_it_is_whole),
                cmocka_unit_test(an_object_of_a_megabyte_and_a_half_is_read),
                cmocka_unit_test(nesting_is_bounded),
                cmocka_unit_test(a_callback_that_fails_ends_the_stream),
                cmocka_unit_test(a_list_may_be_split_anywhere),
                cmocka_unit_test(what_is_no_list_is_refused),
                cmocka_unit_test(a_list_within_the_items_member_is_not_the_items),
                cmocka_unit_test(a_list_without_items_is_a_list),
                cmocka_unit_test(an_item_and_what_is_around_items_are_bounded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
