/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/drm_fdinfo.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

enum { CLIENTS_MAX = 256 };

struct entry { /* a client, as it was last seen */
        struct drm_client client;
        uint32_t pid, fd; /* where it has no id */
        bool seen;
};

struct drm_usage {
        struct entry *entries;
        size_t n_entries;
        bool failed, uncounted, advanced; /* of this reading */
        bool complete;                    /* the one before was: a new client's time was spent since then */
        struct drm_usage_totals totals;
};

static struct drm_engine *engine_named(struct drm_client *client, const char *name, size_t length)
{
        struct drm_engine *engine;

        if (length == 0 || length >= sizeof(engine->name))
                return NULL;
        for (size_t i = 0; i < client->n_engines; i++)
                if (strlen(client->engines[i].name) == length && memcmp(client->engines[i].name, name, length) == 0)
                        return &client->engines[i];
        if (client->n_engines == DRM_ENGINES_MAX)
                return NULL;
        engine = &client->engines[client->n_engines++];
        *engine = (struct drm_engine){ 0 };
        memcpy(engine->name, name, length);
        return engine;
}

static void copy_word(char *word, size_t size, const char *value, size_t length)
{
        while (length > 0 && isspace((unsigned char)value[length - 1]))
                length--;
        length = MIN(length, size - 1);
        memcpy(word, value, length);
        word[length] = '\0';
}

/* The rest of @key behind @prefix, or NULL. */
static const char *behind(const char *key, size_t key_length, const char *prefix, size_t *ret_length)
{
        size_t length = strlen(prefix);

        if (key_length <= length || memcmp(key, prefix, length) != 0)
                return NULL;
        *ret_length = key_length - length;
        return key + length;
}

/* Total cycles and capacities say how much there could have been: of no interest here. */
static void parse_line(struct drm_client *client, const char *key, size_t key_length, const char *value, size_t value_length)
{
        struct drm_engine *engine;
        const char *name;
        size_t length;

        if (key_length == 10 && memcmp(key, "drm-driver", 10) == 0) {
                copy_word(client->driver, sizeof(client->driver), value, value_length);
        } else if (key_length == 8 && memcmp(key, "drm-pdev", 8) == 0) {
                copy_word(client->pdev, sizeof(client->pdev), value, value_length);
        } else if (key_length == 13 && memcmp(key, "drm-client-id", 13) == 0) {
                client->id = strtoull(value, NULL, 10);
                client->has_id = true;
        } else if (behind(key, key_length, "drm-engine-capacity-", &length)) {
                return;
        } else if ((name = behind(key, key_length, "drm-engine-", &length))) {
                engine = engine_named(client, name, length);
                if (engine)
                        engine->busy_ns = strtoull(value, NULL, 10);
        } else if ((name = behind(key, key_length, "drm-cycles-", &length))) {
                engine = engine_named(client, name, length);
                if (engine)
                        engine->busy_cycles = strtoull(value, NULL, 10);
        }
}

int drm_fdinfo_parse(const char *text, struct drm_client *ret_client)
{
        struct drm_client client = { 0 };

        for (const char *line = text; *line;) {
                size_t length = strcspn(line, "\n");
                const char *colon = memchr(line, ':', length), *value;

                if (colon) {
                        value = colon + 1 + strspn(colon + 1, " \t");
                        value = MIN(value, line + length);
                        parse_line(&client, line, (size_t)(colon - line), value, (size_t)(line + length - value));
                }
                line += length + (line[length] == '\n');
        }
        if (!client.driver[0])
                return -ENODATA;
        *ret_client = client;
        return 0;
}

struct drm_usage *drm_usage_new(void)
{
        return calloc(1, sizeof(struct drm_usage));
}

struct drm_usage *drm_usage_free(struct drm_usage *usage)
{
        if (usage)
                free(usage->entries);
        free(usage);
        return NULL;
}

void drm_usage_begin(struct drm_usage *usage)
{
        for (size_t i = 0; i < usage->n_entries; i++)
                usage->entries[i].seen = false;
        usage->failed = usage->uncounted = usage->advanced = false;
}

void drm_usage_fail(struct drm_usage *usage)
{
        usage->failed = true;
}

static struct entry *find_entry(struct drm_usage *usage, const struct drm_client *client, uint32_t pid, uint32_t fd)
{
        for (size_t i = 0; i < usage->n_entries; i++) {
                struct entry *entry = &usage->entries[i];

                if (entry->client.has_id != client->has_id || strcmp(entry->client.pdev, client->pdev) != 0)
                        continue;
                if (client->has_id ? entry->client.id == client->id : entry->pid == pid && entry->fd == fd)
                        return entry;
        }
        return NULL;
}

static struct entry *add_entry(struct drm_usage *usage, const struct drm_client *client, uint32_t pid, uint32_t fd)
{
        struct entry *entries;

        if (usage->n_entries == CLIENTS_MAX)
                return NULL;
        entries = reallocarray(usage->entries, usage->n_entries + 1, sizeof(*entries));
        if (!entries)
                return NULL;
        usage->entries = entries;
        entries[usage->n_entries] = (struct entry){ .client = *client, .pid = pid, .fd = fd };
        return &entries[usage->n_entries++];
}

static void advance(struct drm_usage *usage, uint64_t *value, uint64_t now, bool is_time)
{
        if (now <= *value)
                return;
        usage->advanced = true;
        if (is_time)
                usage->totals.busy_ns += now - *value;
        *value = now;
}

static void follow(struct drm_usage *usage, struct drm_client *known, const struct drm_client *now)
{
        for (size_t i = 0; i < now->n_engines; i++) {
                struct drm_engine *engine = engine_named(known, now->engines[i].name, strlen(now->engines[i].name));

                if (!engine)
                        continue;
                advance(usage, &engine->busy_ns, now->engines[i].busy_ns, true);
                advance(usage, &engine->busy_cycles, now->engines[i].busy_cycles, false);
        }
}

void drm_usage_add(struct drm_usage *usage, const struct drm_client *client, uint32_t pid, uint32_t fd)
{
        struct entry *entry = find_entry(usage, client, pid, fd);

        if (client->n_engines == 0)
                usage->uncounted = true;
        if (!entry) {
                entry = add_entry(usage, client, pid, fd);
                if (!entry) {
                        usage->failed = true;
                        return;
                }
                if (usage->complete)
                        entry->client.n_engines = 0; /* what it has used, it used since the last reading */
        }
        entry->seen = true;
        follow(usage, &entry->client, client);
}

void drm_usage_end(struct drm_usage *usage, uint64_t now_ns)
{
        bool complete = !usage->failed && !usage->uncounted;
        size_t kept = 0;

        for (size_t i = 0; i < usage->n_entries; i++)
                if (usage->entries[i].seen)
                        usage->entries[kept++] = usage->entries[i];
        usage->n_entries = kept;

        if (usage->advanced)
                usage->totals.last_busy_ns = now_ns;
        if (!complete)
                usage->totals.since_ns = 0;
        else if (usage->totals.since_ns == 0)
                usage->totals.since_ns = now_ns;
        usage->complete = !usage->failed;
}

struct drm_usage_totals drm_usage_totals(const struct drm_usage *usage)
{
        return usage->totals;
}
