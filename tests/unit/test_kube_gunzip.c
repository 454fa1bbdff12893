/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/macros.h"
#include "kube/buffer.h"
#include "kube/gunzip.h"

enum { LONG_BYTES = 100000, COMPRESSED_MAX = 2 * LONG_BYTES };

/* Appends @text as a member of its own. */
static void compress_into(struct kube_buffer *buffer, const char *text, size_t length)
{
        static unsigned char compressed[COMPRESSED_MAX];
        z_stream zlib = { .next_in = (unsigned char *)text, .avail_in = (unsigned)length };

        assert_int_equal(deflateInit2(&zlib, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
        zlib.next_out = compressed;
        zlib.avail_out = sizeof(compressed);
        assert_int_equal(deflate(&zlib, Z_FINISH), Z_STREAM_END);
        assert_int_equal(kube_buffer_append(buffer, (char *)compressed, sizeof(compressed) - zlib.avail_out, SIZE_MAX), 0);
        deflateEnd(&zlib);
}

static int on_output(const char *data, size_t length, void *userdata)
{
        return kube_buffer_append(userdata, data, length, SIZE_MAX);
}

static int refuse(const char *data, size_t length, void *userdata)
{
        return -EMSGSIZE;
}

/* Feeds @step bytes at a time. */
static int feed(struct kube_gunzip *gunzip, const struct kube_buffer *compressed, size_t step, struct kube_buffer *output)
{
        for (size_t at = 0; at < compressed->length; at += step) {
                int r = kube_gunzip_feed(gunzip, compressed->data + at, MIN(step, compressed->length - at), on_output, output);

                if (r < 0)
                        return r;
        }
        return 0;
}

static void test_members_one_after_another_are_one_text_however_they_are_cut(void **state)
{
        static const size_t steps[] = { 1, 2, 7, 19, SIZE_MAX / 2 };
        struct kube_buffer compressed = { 0 };

        compress_into(&compressed, "first,", 6);
        compress_into(&compressed, "", 0);
        compress_into(&compressed, "second", 6);
        for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
                _cleanup_(kube_gunzip_freep) struct kube_gunzip *gunzip = NULL;
                struct kube_buffer output = { 0 };

                assert_int_equal(kube_gunzip_new(&gunzip), 0);
                assert_int_equal(feed(gunzip, &compressed, steps[i], &output), 0);
                assert_int_equal(output.length, 12);
                assert_memory_equal(output.data, "first,second", 12);
                assert_true(kube_gunzip_is_whole(gunzip));
                kube_buffer_done(&output);
        }
        kube_buffer_done(&compressed);
}

static void test_what_a_member_holds_comes_before_the_next_begins(void **state)
{
        _cleanup_(kube_gunzip_freep) struct kube_gunzip *gunzip = NULL;
        struct kube_buffer compressed = { 0 }, output = { 0 };

        compress_into(&compressed, "event", 5);
        assert_int_equal(kube_gunzip_new(&gunzip), 0);
        assert_int_equal(feed(gunzip, &compressed, compressed.length, &output), 0);
        assert_int_equal(output.length, 5);
        kube_buffer_done(&compressed);
        kube_buffer_done(&output);
}

static void test_much_comes_out_of_little(void **state)
{
        static char zeros[LONG_BYTES];
        _cleanup_(kube_gunzip_freep) struct kube_gunzip *gunzip = NULL;
        struct kube_buffer compressed = { 0 }, output = { 0 };

        compress_into(&compressed, zeros, sizeof(zeros));
        assert_true(compressed.length < 1000);
        assert_int_equal(kube_gunzip_new(&gunzip), 0);
        assert_int_equal(feed(gunzip, &compressed, compressed.length, &output), 0);
        assert_int_equal(output.length, sizeof(zeros));
        assert_memory_equal(output.data, zeros, sizeof(zeros));
        kube_buffer_done(&compressed);
        kube_buffer_done(&output);
}

static void test_a_member_cut_off_is_not_whole(void **state)
{
        _cleanup_(kube_gunzip_freep) struct kube_gunzip *gunzip = NULL;
        struct kube_buffer compressed = { 0 }, output = { 0 };

        compress_into(&compressed, "event", 5);
        compressed.length--;
        assert_int_equal(kube_gunzip_new(&gunzip), 0);
        assert_true(kube_gunzip_is_whole(gunzip));
        assert_int_equal(feed(gunzip, &compressed, 3, &output), 0);
        assert_false(kube_gunzip_is_whole(gunzip));
        kube_buffer_done(&compressed);
        kube_buffer_done(&output);
}

static void test_what_is_not_gzip_is_refused(void **state)
{
        _cleanup_(kube_gunzip_freep) struct kube_gunzip *gunzip = NULL, *after_a_member = NULL;
        struct kube_buffer compressed = { 0 }, output = { 0 };

        assert_int_equal(kube_gunzip_new(&gunzip), 0);
        assert_int_equal(kube_gunzip_feed(gunzip, "{\"kind\":", 8, on_output, &output), -EBADMSG);

        compress_into(&compressed, "event", 5);
        assert_int_equal(kube_buffer_append(&compressed, "garbage", 7, SIZE_MAX), 0);
        assert_int_equal(kube_gunzip_new(&after_a_member), 0);
        assert_int_equal(feed(after_a_member, &compressed, compressed.length, &output), -EBADMSG);
        kube_buffer_done(&compressed);
        kube_buffer_done(&output);
}

static void test_what_the_reader_says_is_returned(void **state)
{
        _cleanup_(kube_gunzip_freep) struct kube_gunzip *gunzip = NULL;
        struct kube_buffer compressed = { 0 };

        compress_into(&compressed, "event", 5);
        assert_int_equal(kube_gunzip_new(&gunzip), 0);
        assert_int_equal(kube_gunzip_feed(gunzip, compressed.data, compressed.length, refuse, NULL), -EMSGSIZE);
        kube_buffer_done(&compressed);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_members_one_after_another_are_one_text_however_they_are_cut),
                cmocka_unit_test(test_what_a_member_holds_comes_before_the_next_begins),
                cmocka_unit_test(test_much_comes_out_of_little),
                cmocka_unit_test(test_a_member_cut_off_is_not_whole),
                cmocka_unit_test(test_what_is_not_gzip_is_refused),
                cmocka_unit_test(test_what_the_reader_says_is_returned),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
