/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/conditions.h"

#include <stdarg.h>
#include <string.h>

#include "base/text.h"

const struct condition_entry *conditions_find(const struct conditions *conditions, const char *type)
{
        for (size_t i = 0; i < conditions->n; i++)
                if (strcmp(conditions->entries[i].type, type) == 0)
                        return &conditions->entries[i];
        return NULL;
}

void conditions_add(struct conditions *conditions, const char *type, const char *reason, const char *format, ...)
{
        struct condition_entry *entry;
        va_list arguments;

        if (conditions->n == STATUS_CONDITIONS_MAX || conditions_find(conditions, type))
                return;
        entry = &conditions->entries[conditions->n++];
        entry->type = type;
        entry->reason = reason;
        va_start(arguments, format);
        text_format_list(entry->message, sizeof(entry->message), format, arguments);
        va_end(arguments);
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
