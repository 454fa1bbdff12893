/* SPDX-License-Identifier: Apache-2.0 */
/* A kubeconfig: lists of clusters, users and contexts by name, and which context is current. What is read is a copy, so that
 * what is not read (preferences, extensions, other contexts) may be anything. */
#include <stdarg.h>
#include <string.h>
#include <yaml.h>

#include "kube/base64.h"
#include "kube/config.h"
#include "kube/text_file.h"
#include "policy/documents.h"

struct reading {
        const char *path;
        const char *context; /* asked for, or NULL */
        char *directory;     /* that relative names start from; ends with a slash, or is empty */
        char *error;         /* KUBE_CONFIG_ERROR_MAX bytes */
        yaml_document_t *document;
        struct kube_config *config;
        bool seen;
};

static int _printf_(3, 4) problem(struct reading *reading, const yaml_node_t *node, const char *format, ...)
{
        char text[KUBE_CONFIG_ERROR_MAX / 2];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        if (node)
                snprintf(reading->error, KUBE_CONFIG_ERROR_MAX, "%s:%zu: %s", reading->path, node->start_mark.line + 1, text);
        else
                snprintf(reading->error, KUBE_CONFIG_ERROR_MAX, "%s: %s", reading->path, text);
        return -EINVAL;
}

static yaml_node_t *map_get(struct reading *reading, const yaml_node_t *map, const char *key)
{
        if (!map || map->type != YAML_MAPPING_NODE)
                return NULL;
        for (const yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top; pair++) {
                const yaml_node_t *name = yaml_document_get_node(reading->document, pair->key);

                if (name && name->type == YAML_SCALAR_NODE && strcmp((const char *)name->data.scalar.value, key) == 0)
                        return yaml_document_get_node(reading->document, pair->value);
        }
        return NULL;
}

static const char *node_text(const yaml_node_t *node)
{
        if (!node || node->type != YAML_SCALAR_NODE || strlen((const char *)node->data.scalar.value) != node->data.scalar.length)
                return NULL;
        return (const char *)node->data.scalar.value;
}

/* The text of a field, NULL where it is missing or empty. */
static int text_get(struct reading *reading, const yaml_node_t *map, const char *where, const char *key, const char **ret_text)
{
        const yaml_node_t *node = map_get(reading, map, key);
        const char *text = node_text(node);

        if (node && !text)
                return problem(reading, node, "%s.%s is not a text", where, key);
        *ret_text = text && *text ? text : NULL;
        return 0;
}

static int text_copy(struct reading *reading, const yaml_node_t *map, const char *where, const char *key, char **ret_text)
{
        const char *text = NULL;
        int r = text_get(reading, map, where, key, &text);

        if (r < 0 || !text)
                return r;
        *ret_text = strdup(text);
        return *ret_text ? 0 : -ENOMEM;
}

/* clusters: [{name: …, cluster: {…}}] → the inner mapping. */
static int named_get(struct reading *reading, const char *list_key, const char *key, const char *name, yaml_node_t **ret_node)
{
        yaml_node_t *root = yaml_document_get_root_node(reading->document), *list = map_get(reading, root, list_key);

        if (!list || list->type != YAML_SEQUENCE_NODE)
                return problem(reading, list ? list : root, "%s is missing or is not a list", list_key);

        for (const yaml_node_item_t *item = list->data.sequence.items.start; item < list->data.sequence.items.top; item++) {
                yaml_node_t *entry = yaml_document_get_node(reading->document, *item), *inner;
                const char *entry_name = node_text(map_get(reading, entry, "name"));

                if (!entry_name || strcmp(entry_name, name) != 0)
                        continue;
                inner = map_get(reading, entry, key);
                if (!inner || inner->type != YAML_MAPPING_NODE)
                        return problem(reading, entry, "%s \"%s\" has no %s", list_key, name, key);
                *ret_node = inner;
                return 0;
        }
        return problem(reading, list, "%s has none with the name \"%s\"", list_key, name);
}

/* KEY (a file) or KEY-data (base64, which wins where both are). */
static int pem_read(struct reading *reading, const yaml_node_t *map, const char *where, const char *key, struct kube_pem *pem)
{
        char data_key[64];
        const char *file = NULL, *data = NULL;
        int r;

        snprintf(data_key, sizeof(data_key), "%s-data", key);
        r = text_get(reading, map, where, data_key, &data);
        if (r >= 0)
                r = text_get(reading, map, where, key, &file);
        if (r < 0)
                return r;

        if (data) {
                r = kube_base64_decode(data, &pem->data);
                if (r == -EINVAL)
                        return problem(reading, map_get(reading, map, data_key), "%s.%s is not base64 of a PEM text", where,
                                       data_key);
                return r;
        }
        if (file && asprintf(&pem->file, "%s%s", *file == '/' ? "" : reading->directory, file) < 0) {
                pem->file = NULL;
                return -ENOMEM;
        }
        return 0;
}

static int server_read(struct reading *reading, const yaml_node_t *cluster)
{
        struct kube_config *config = reading->config;
        size_t length;
        int r = text_copy(reading, cluster, "cluster", "server", &config->server);

        if (r < 0)
                return r;
        if (!config->server)
                return problem(reading, cluster, "cluster.server is missing");
        if (strncasecmp(config->server, "https://", strlen("https://")) != 0)
                return problem(reading, map_get(reading, cluster, "server"),
                               "cluster.server: \"%.128s\" does not begin with https://; lull talks to API servers over TLS only",
                               config->server);
        length = strlen(config->server);
        while (config->server[length - 1] == '/')
                config->server[--length] = '\0';
        return 0;
}

static int cluster_read(struct reading *reading, const yaml_node_t *cluster)
{
        const char *insecure = NULL;
        int r = server_read(reading, cluster);

        if (r < 0)
                return r;
        r = text_get(reading, cluster, "cluster", "insecure-skip-tls-verify", &insecure);
        if (r < 0)
                return r;
        if (insecure && strcmp(insecure, "true") == 0)
                return problem(reading, map_get(reading, cluster, "insecure-skip-tls-verify"),
                               "cluster.insecure-skip-tls-verify: lull always verifies the server; give its certificate-authority");
        r = text_copy(reading, cluster, "cluster", "tls-server-name", &reading->config->tls_server_name);
        if (r < 0)
                return r;
        return pem_read(reading, cluster, "cluster", "certificate-authority", &reading->config->ca);
}

static int user_refuse(struct reading *reading, const yaml_node_t *user)
{
        static const char *const unsupported[] = { "exec", "auth-provider", "username", "password" };

        for (size_t i = 0; i < ELEMENTSOF(unsupported); i++) {
                const yaml_node_t *node = map_get(reading, user, unsupported[i]);

                if (node)
                        return problem(
                                reading, node,
                                "user.%s is not supported: give a token, a tokenFile, or a client-certificate and client-key",
                                unsupported[i]);
        }
        return 0;
}

static int token_file_read(struct reading *reading, const yaml_node_t *user, struct kube_pem *token)
{
        const char *file = NULL;
        int r = text_get(reading, user, "user", "tokenFile", &file);

        if (r < 0 || !file)
                return r;
        if (asprintf(&token->file, "%s%s", *file == '/' ? "" : reading->directory, file) < 0) {
                token->file = NULL;
                return -ENOMEM;
        }
        return 0;
}

static bool pem_is_there(const struct kube_pem *pem)
{
        return pem->file || pem->data;
}

static int user_read(struct reading *reading, const yaml_node_t *user)
{
        struct kube_config *config = reading->config;
        int r = user_refuse(reading, user);

        if (r >= 0)
                r = pem_read(reading, user, "user", "client-certificate", &config->client_certificate);
        if (r >= 0)
                r = pem_read(reading, user, "user", "client-key", &config->client_key);
        if (r >= 0)
                r = token_file_read(reading, user, &config->token);
        if (r >= 0)
                r = text_copy(reading, user, "user", "token", &config->token.data);
        if (r < 0)
                return r;
        if (pem_is_there(&config->client_certificate) != pem_is_there(&config->client_key))
                return problem(reading, user, "user has only one of client-certificate and client-key; it needs both");
        return 0;
}

static int context_read(struct reading *reading, const yaml_node_t *context)
{
        const char *cluster_name = NULL, *user_name = NULL;
        yaml_node_t *cluster = NULL, *user = NULL;
        int r;

        r = text_get(reading, context, "context", "cluster", &cluster_name);
        if (r >= 0)
                r = text_get(reading, context, "context", "user", &user_name);
        if (r < 0)
                return r;
        if (!cluster_name)
                return problem(reading, context, "context.cluster is missing");

        r = named_get(reading, "clusters", "cluster", cluster_name, &cluster);
        if (r >= 0)
                r = cluster_read(reading, cluster);
        if (r >= 0 && user_name)
                r = named_get(reading, "users", "user", user_name, &user);
        if (r >= 0 && user_name)
                r = user_read(reading, user);
        if (r < 0)
                return r;

        r = text_copy(reading, context, "context", "namespace", &reading->config->namespace);
        if (r >= 0 && !reading->config->namespace)
                reading->config->namespace = strdup("default");
        return r < 0 ? r : reading->config->namespace ? 0 : -ENOMEM;
}

static int on_document(const char *file, yaml_document_t *document, void *userdata)
{
        struct reading *reading = userdata;
        const yaml_node_t *root = yaml_document_get_root_node(document);
        yaml_node_t *context = NULL;
        const char *name = reading->context;
        int r;

        if (!root || reading->seen)
                return 0;
        reading->seen = true;
        reading->document = document;
        if (root->type != YAML_MAPPING_NODE)
                return problem(reading, root, "is not a kubeconfig: there is no mapping at its top");
        if (!name) {
                r = text_get(reading, root, "kubeconfig", "current-context", &name);
                if (r < 0)
                        return r;
        }
        if (!name)
                return problem(reading, root, "current-context is missing; name a context");
        r = named_get(reading, "contexts", "context", name, &context);
        return r < 0 ? r : context_read(reading, context);
}

static int text_read(struct reading *reading, const char *text)
{
        _cleanup_(problems_done) struct problems problems = { 0 };
        int r = documents_read(reading->path, text, strlen(text), &problems, on_document, reading);

        if (r < 0)
                return r;
        if (problems.n_messages > 0) {
                snprintf(reading->error, KUBE_CONFIG_ERROR_MAX, "%s", problems.messages[0]);
                return -EINVAL;
        }
        return reading->seen ? 0 : problem(reading, NULL, "is empty");
}

int kube_config_load_file(const char *path, const char *context, struct kube_config **ret_config,
                          char error[static KUBE_CONFIG_ERROR_MAX])
{
        _cleanup_(kube_config_freep) struct kube_config *config = calloc(1, sizeof(*config));
        _cleanup_(freep) char *text = NULL, *directory = strdup(path);
        struct reading reading = { .path = path, .context = context, .directory = directory, .error = error, .config = config };
        char *slash;
        int r;

        *error = '\0';
        if (!config || !directory)
                return -ENOMEM;
        slash = strrchr(directory, '/');
        directory[slash ? slash - directory + 1 : 0] = '\0';
        config->source = strdup(path);
        if (!config->source)
                return -ENOMEM;

        r = kube_text_file_read(path, KUBE_CONFIG_BYTES_MAX, &text);
        if (r >= 0)
                r = text_read(&reading, text);
        if (r < 0) {
                if (*error == '\0')
                        snprintf(error, KUBE_CONFIG_ERROR_MAX, "%s: %s", path, strerror(-r));
                return r;
        }
        *ret_config = TAKE_PTR(config);
        return 0;
}
