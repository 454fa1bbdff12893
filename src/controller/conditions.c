/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/conditions.h"

#include <stdarg.h>
#include <string.h>

const struct condition_entry *conditions_find(const struct conditions *conditions, const char *type)
{
        for (size_t i = 0; i < conditions->n; i++)
                if (strcmp(conditions->entries[i].type, type) == 0)
                        return &conditions->entries[i];
        return NULL;
}

static void cut_at_character(char *text, int length)
{
        size_t end = CONDITION_MESSAGE_MAX - 1;

        if (length < CONDITION_MESSAGE_MAX)
                return;
        while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
                end--;
        /* The character that begins here may have lost its end. */
        if ((unsigned char)text[end] >= 0xc0 || text[end] == '\0') {
                while (end > 0 && ((unsigned char)text[end - 1] & 0xc0) == 0x80)
                        end--;
                if (end > 0 && (unsigned char)text[end - 1] >= 0xc0)
                        end--;
        }
        text[end] = '\0';
}

void conditions_add(struct conditions *conditions, const char *type, const char *reason, const char *format, ...)
{
        struct condition_entry *entry;
        va_list arguments;
        int length;

        if (conditions->n == STATUS_CONDITIONS_MAX || conditions_find(conditions, type))
                return;
        entry = &conditions->entries[conditions->n++];
        entry->type = type;
        entry->reason = reason;
        va_start(arguments, format);
        length = vsnprintf(entry->message, sizeof(entry->message), format, arguments);
        va_end(arguments);
        cut_at_character(entry->message, length);
}

bool conditions_keep(struct conditions *conditions, const struct scale_to_zero_status *status, const char *type)
{
        const struct status_condition *condition = status_find_condition(status, type);

        if (!condition || !condition->holds)
                return false;
        conditions_add(conditions, condition->type, condition->reason ? condition->reason : "Unknown", "%s",
                       condition->message ? condition->message : "");
        return true;
}

uint32_t conditions_news(const struct conditions *conditions, const struct scale_to_zero_status *status)
{
        uint32_t news = 0;

        for (size_t i = 0; i < conditions->n; i++) {
                const struct status_condition *before = status_find_condition(status, conditions->entries[i].type);

                if (!before || !before->holds)
                        news |= UINT32_C(1) << i;
        }
        return news;
}

void conditions_to_status(const struct conditions *conditions, const struct scale_to_zero *object, uint64_t now_realtime_ns,
                          struct status_condition ret[static STATUS_CONDITIONS_MAX])
{
        for (size_t i = 0; i < conditions->n; i++) {
                const struct condition_entry *entry = &conditions->entries[i];
                const struct status_condition *before = status_find_condition(&object->status, entry->type);

                ret[i] = (struct status_condition){
                        .type = (char *)entry->type,
                        .reason = (char *)entry->reason,
                        .message = (char *)entry->message,
                        .holds = true,
                        .since_realtime_ns = before && before->holds ? before->since_realtime_ns : now_realtime_ns,
                        .generation = object->metadata.generation,
                };
        }
}
