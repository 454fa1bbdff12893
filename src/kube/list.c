/* SPDX-License-Identifier: Apache-2.0 */
/* The list without its items, the frame, is kept as text and parsed at the end: the parser finds what is wrong with it, and this
 * only needs to tell items from the rest. */
#include "kube/list.h"

#include <string.h>

#include "kube/buffer.h"
#include "kube/scan.h"

enum { ITEMS_DEPTH = 2 }; /* between the brackets of "items" */

enum items_state {
        ITEMS_NOT_SEEN,
        ITEMS_FIRST, /* an item or the end */
        ITEMS_COMMA, /* a comma or the end */
        ITEMS_ITEM,  /* an item */
        ITEMS_OVER,
};

struct kube_list {
        int (*item)(const json_t *item, void *userdata);
        void *userdata;
        size_t item_max;
        struct kube_scan scan;
        struct kube_buffer frame;
        struct kube_buffer buffer; /* the beginning of an item that is not complete */
        enum items_state items;
        char key[sizeof("items")]; /* the last string directly in the list, as far as it fits */
        size_t key_length;
        bool key_is_items; /* ... and it is the key of the value that is open */
        bool complete;
        int failed;
        json_t *head;
};

int kube_list_new(size_t item_max, int (*item)(const json_t *item, void *userdata), void *userdata, struct kube_list **ret_list)
{
        struct kube_list *list = calloc(1, sizeof(*list));

        if (!list)
                return -ENOMEM;
        list->item = item;
        list->userdata = userdata;
        list->item_max = item_max;
        *ret_list = list;
        return 0;
}

struct kube_list *kube_list_free(struct kube_list *list)
{
        if (!list)
                return NULL;
        kube_buffer_done(&list->frame);
        kube_buffer_done(&list->buffer);
        json_decref(list->head);
        free(list);
        return NULL;
}

static bool is_among_items(const struct kube_list *list)
{
        return list->items != ITEMS_NOT_SEEN && list->items != ITEMS_OVER;
}

static void key_follow(struct kube_list *list, char byte, bool was_in_string)
{
        if (list->scan.depth != 1)
                return;
        if (!was_in_string && list->scan.in_string)
                list->key_length = 0;
        else if (was_in_string && list->scan.in_string && list->key_length < sizeof(list->key))
                list->key[list->key_length++] = byte;
        else if (!was_in_string && byte == ':')
                list->key_is_items = list->key_length == strlen("items") && memcmp(list->key, "items", list->key_length) == 0;
}

static int frame_byte(struct kube_list *list, char byte)
{
        bool was_in_string = list->scan.in_string;

        if (list->complete || (list->scan.depth == 0 && byte != '{'))
                return kube_scan_is_space(byte) ? 0 : -EBADMSG;

        kube_scan_byte(&list->scan, byte);
        key_follow(list, byte, was_in_string);
        if (byte == '[' && !was_in_string && list->scan.depth == ITEMS_DEPTH && list->key_is_items) {
                if (list->items != ITEMS_NOT_SEEN)
                        return -EBADMSG;
                list->items = ITEMS_FIRST;
        }
        list->complete = list->scan.depth == 0;
        return kube_buffer_append(&list->frame, &byte, 1, KUBE_LIST_FRAME_MAX);
}

static int item_complete(struct kube_list *list)
{
        json_t *item = json_loadb(list->buffer.data, list->buffer.length, JSON_ALLOW_NUL, NULL);
        int r;

        kube_buffer_clear(&list->buffer);
        list->items = ITEMS_COMMA;
        if (!item)
                return -EBADMSG;
        r = list->item(item, list->userdata);
        json_decref(item);
        return r < 0 ? r : 0;
}

static ssize_t item_take(struct kube_list *list, const char *data, size_t length)
{
        size_t taken = kube_scan_until(&list->scan, data, length, ITEMS_DEPTH);
        int r = kube_buffer_append(&list->buffer, data, taken, list->item_max);

        if (r >= 0 && list->scan.depth == ITEMS_DEPTH && !list->scan.in_string)
                r = item_complete(list);
        return r < 0 ? r : (ssize_t)taken;
}

static int between_items(struct kube_list *list, char byte)
{
        if (kube_scan_is_space(byte))
                return 0;
        if (byte == ',' && list->items == ITEMS_COMMA) {
                list->items = ITEMS_ITEM;
                return 0;
        }
        if (byte == ']' && list->items != ITEMS_ITEM) {
                list->items = ITEMS_OVER;
                return frame_byte(list, byte);
        }
        return -EBADMSG;
}

/* Returns how many bytes it took, or -errno. */
static ssize_t list_take(struct kube_list *list, const char *data, size_t length)
{
        int r;

        if (is_among_items(list)) {
                if (list->scan.depth > ITEMS_DEPTH || (*data == '{' && list->items != ITEMS_COMMA))
                        return item_take(list, data, length);
                r = between_items(list, *data);
        } else {
                r = frame_byte(list, *data);
        }
        return r < 0 ? r : 1;
}

int kube_list_feed(struct kube_list *list, const char *data, size_t length)
{
        while (length > 0 && list->failed == 0) {
                ssize_t taken = list_take(list, data, length);

                if (taken < 0) {
                        list->failed = (int)taken;
                        break;
                }
                data += taken;
                length -= (size_t)taken;
        }
        return list->failed;
}

int kube_list_end(struct kube_list *list, struct kube_list_head *ret_head)
{
        const json_t *metadata, *items, *remaining;
        struct kube_list_head head = { .remaining = -1 };

        if (list->failed < 0)
                return list->failed;
        if (!list->complete)
                return -EPIPE;
        if (!list->head)
                list->head = json_loadb(list->frame.data, list->frame.length, 0, NULL);

        metadata = json_object_get(list->head, "metadata");
        items = json_object_get(list->head, "items");
        head.resource_version = json_string_value(json_object_get(metadata, "resourceVersion"));
        if (!head.resource_version || !(json_is_array(items) || json_is_null(items)))
                return -EBADMSG;

        head.continue_token = json_string_value(json_object_get(metadata, "continue"));
        if (head.continue_token && *head.continue_token == '\0')
                head.continue_token = NULL;
        remaining = json_object_get(metadata, "remainingItemCount");
        if (json_is_integer(remaining))
                head.remaining = json_integer_value(remaining);
        *ret_head = head;
        return 0;
}
