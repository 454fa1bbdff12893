/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/config.h"

#include <string.h>

#include "kube/text_file.h"

#define SERVICE_ACCOUNT_DIRECTORY "/var/run/secrets/kubernetes.io/serviceaccount"

enum { NAMESPACE_BYTES_MAX = 256 };

static void pem_done(struct kube_pem *pem)
{
        free(pem->file);
        if (pem->data)
                explicit_bzero(pem->data, strlen(pem->data));
        free(pem->data);
}

struct kube_config *kube_config_free(struct kube_config *config)
{
        if (!config)
                return NULL;
        free(config->source);
        free(config->server);
        free(config->namespace);
        free(config->tls_server_name);
        pem_done(&config->ca);
        pem_done(&config->client_certificate);
        pem_done(&config->client_key);
        pem_done(&config->token);
        free(config);
        return NULL;
}

static int file_in(const char *directory, const char *name, char **ret_path)
{
        char *path;

        if (asprintf(&path, "%s/%s", directory, name) < 0)
                return -ENOMEM;
        *ret_path = path;
        return 0;
}

static int server_from_environment(char **ret_server)
{
        const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
        bool bare_ipv6;
        char *server;

        if (!host || !*host || !port || !*port)
                return -ENOENT;
        bare_ipv6 = strchr(host, ':') && *host != '[';
        if (asprintf(&server, "https://%s%s%s:%s", bare_ipv6 ? "[" : "", host, bare_ipv6 ? "]" : "", port) < 0)
                return -ENOMEM;
        *ret_server = server;
        return 0;
}

static int namespace_read(const char *directory, char **ret_namespace)
{
        _cleanup_(freep) char *path = NULL, *text = NULL;
        int r = file_in(directory, "namespace", &path);

        if (r < 0)
                return r;
        r = kube_text_file_read(path, NAMESPACE_BYTES_MAX, &text);
        if (r >= 0)
                text[strcspn(text, " \r\n")] = '\0';
        else if (r == -ENOENT)
                text = strdup("default");
        else
                return r;
        if (!text)
                return -ENOMEM;
        *ret_namespace = TAKE_PTR(text);
        return 0;
}

static int service_account_read(const char *directory, struct kube_config *config)
{
        int r;

        config->source = strdup("in-cluster");
        if (!config->source)
                return -ENOMEM;
        r = file_in(directory, "token", &config->token.file);
        if (r >= 0)
                r = file_in(directory, "ca.crt", &config->ca.file);
        if (r >= 0)
                r = namespace_read(directory, &config->namespace);
        if (r >= 0 && access(config->token.file, R_OK) < 0)
                r = -errno;
        return r;
}

int kube_config_load_in_cluster(const char *directory, struct kube_config **ret_config, char error[static KUBE_CONFIG_ERROR_MAX])
{
        _cleanup_(kube_config_freep) struct kube_config *config = calloc(1, sizeof(*config));
        int r;

        *error = '\0';
        if (!config)
                return -ENOMEM;
        directory = directory ? directory : SERVICE_ACCOUNT_DIRECTORY;

        r = server_from_environment(&config->server);
        if (r < 0) {
                snprintf(
                        error, KUBE_CONFIG_ERROR_MAX,
                        "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this is not a pod of a Kubernetes cluster");
                return r;
        }
        r = service_account_read(directory, config);
        if (r < 0) {
                snprintf(error, KUBE_CONFIG_ERROR_MAX, "%s: the service account's token cannot be read: %s", directory,
                         strerror(-r));
                return r;
        }
        *ret_config = TAKE_PTR(config);
        return 0;
}

static int load_default(struct kube_config **ret_config, char error[static KUBE_CONFIG_ERROR_MAX])
{
        const char *named = getenv("KUBECONFIG"), *home = getenv("HOME");
        _cleanup_(freep) char *path = NULL;
        int r;

        if (named && *named) {
                if (!strchr(named, ':'))
                        return kube_config_load_file(named, NULL, ret_config, error);
                snprintf(error, KUBE_CONFIG_ERROR_MAX, "KUBECONFIG names several files, \"%.256s\"; lull reads one", named);
                return -EINVAL;
        }
        r = file_in(home ? home : "", ".kube/config", &path);
        return r < 0 ? r : kube_config_load_file(path, NULL, ret_config, error);
}

int kube_config_load(const char *path, struct kube_config **ret_config, char error[static KUBE_CONFIG_ERROR_MAX])
{
        int r;

        *error = '\0';
        if (path)
                return kube_config_load_file(path, NULL, ret_config, error);
        r = kube_config_load_in_cluster(NULL, ret_config, error);
        return r == -ENOENT && !getenv("KUBERNETES_SERVICE_HOST") ? load_default(ret_config, error) : r;
}
