/* SPDX-License-Identifier: Apache-2.0 */
/* Where the API server is and who we are to it: from a kubeconfig file, or from what Kubernetes gives every pod.
 *
 * Only names and embedded data are read here; credentials.h reads the files they name, again and again. A kubeconfig that verifies
 * nothing (insecure-skip-tls-verify), asks a program for credentials (exec, auth-provider) or has a password is refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"

/* Either a file to read, or its contents as they stood in the kubeconfig, or neither. */
struct kube_pem {
        char *file;
        char *data;
};

struct kube_config {
        char *source;          /* for messages: the kubeconfig's path, or "in-cluster" */
        char *server;          /* "https://10.96.0.1:443", without a slash at the end */
        char *namespace;       /* of the context or the pod; "default" where none is given */
        char *tls_server_name; /* the name its certificate is verified for, when it is not the server's; or NULL */
        struct kube_pem ca;    /* neither: the system's */
        struct kube_pem client_certificate, client_key;
        struct kube_pem token; /* the file is preferred, as client-go does */
};

enum {
        KUBE_CONFIG_ERROR_MAX = 512,     /* bytes of a message, the NUL counted */
        KUBE_CONFIG_BYTES_MAX = 1 << 20, /* of a kubeconfig */
};

/* Reads @path (the context @context, or where that is NULL the file's current one). Relative names in it are relative to its
 * directory. Returns 0, -EINVAL with a message that names file and field, or another -errno with a message. */
int kube_config_load_file(const char *path, const char *context, struct kube_config **ret_config,
                          char error[static KUBE_CONFIG_ERROR_MAX]);

/* From KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and the files below @directory; NULL stands for
 * /var/run/secrets/kubernetes.io/serviceaccount. Returns 0, or -ENOENT outside of a pod, or another -errno; with a message. */
int kube_config_load_in_cluster(const char *directory, struct kube_config **ret_config, char error[static KUBE_CONFIG_ERROR_MAX]);

/* @path if it is given; in-cluster inside of a pod; else $KUBECONFIG, else ~/.kube/config. Returns as the above. */
int kube_config_load(const char *path, struct kube_config **ret_config, char error[static KUBE_CONFIG_ERROR_MAX]);

struct kube_config *kube_config_free(struct kube_config *config);
DEFINE_CLEANUP(struct kube_config, kube_config_free)
