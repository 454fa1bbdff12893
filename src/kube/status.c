/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/status.h"

#include <string.h>

#include "base/time.h"

static void text_copy(char *buffer, size_t size, const json_t *text)
{
        const char *value = json_string_value(text);
        size_t length = value ? strnlen(value, size - 1) : 0;

        /* not within a character */
        if (value && value[length] != '\0')
                while (length > 0 && ((unsigned char)value[length] & 0xc0) == 0x80)
                        length--;
        if (length > 0)
                memcpy(buffer, value, length);
        buffer[length] = '\0';
}

/* As apimachinery's IsTooLargeResourceVersionError() has it: by the cause, and for old servers by the message. */
static bool is_too_large(const json_t *details, const char *message)
{
        const json_t *causes = json_object_get(details, "causes"), *cause;
        size_t i;

        json_array_foreach(causes, i, cause) {
                const char *reason = json_string_value(json_object_get(cause, "reason"));

                if (reason && strcmp(reason, "ResourceVersionTooLarge") == 0)
                        return true;
        }
        return strstr(message, "Too large resource version") != NULL;
}

void kube_status_read(const json_t *object, struct kube_status *ret_status)
{
        const json_t *details = json_object_get(object, "details");
        const json_t *code = json_object_get(object, "code"), *seconds = json_object_get(details, "retryAfterSeconds");
        struct kube_status status = { 0 };

        if (json_is_integer(code) && json_integer_value(code) > 0 && json_integer_value(code) < 1000)
                status.code = (unsigned)json_integer_value(code);
        text_copy(status.reason, sizeof(status.reason), json_object_get(object, "reason"));
        text_copy(status.message, sizeof(status.message), json_object_get(object, "message"));
        if (json_is_integer(seconds) && json_integer_value(seconds) > 0)
                status.retry_after_ns = (uint64_t)json_integer_value(seconds) * NSEC_PER_SEC;
        if (status.retry_after_ns > KUBE_RETRY_AFTER_MAX_NS)
                status.retry_after_ns = KUBE_RETRY_AFTER_MAX_NS;
        status.too_large = is_too_large(details, status.message);
        *ret_status = status;
}

bool kube_status_is_expired(const struct kube_status *status)
{
        return status->code == 410 || strcmp(status->reason, "Expired") == 0 || strcmp(status->reason, "Gone") == 0;
}

bool kube_status_is_conflict(const struct kube_status *status)
{
        return status->code == 409 && strcmp(status->reason, "Conflict") == 0;
}
