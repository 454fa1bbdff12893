/* SPDX-License-Identifier: Apache-2.0 */
/* Where the API server is: kubeconfig files and what a pod has; mistakes are named by file, line and field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/time.h"
#include "kube/config.h"
#include "kube/credentials.h"

struct fixture {
        char directory[64];
        char path[96];
};

static void write_file(const struct fixture *fixture, const char *name, const char *text)
{
        char path[160];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
        file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        fclose(file);
}

static int setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        strcpy(fixture->directory, "/tmp/lull-kube-config-XXXXXX");
        assert_non_null(mkdtemp(fixture->directory));
        snprintf(fixture->path, sizeof(fixture->path), "%s/config", fixture->directory);
        *state = fixture;
        return 0;
}

static int teardown(void **state)
{
        static const char *const names[] = { "config", "token", "ca.crt", "namespace", "client.crt", "client.key" };
        struct fixture *fixture = *state;
        char path[160];

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                snprintf(path, sizeof(path), "%s/%s", fixture->directory, names[i]);
                unlink(path);
        }
        assert_int_equal(rmdir(fixture->directory), 0);
        free(fixture);
        return 0;
}

#define CONTEXT "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u, namespace: n}}]\n"
#define CLUSTER "clusters:\n- name: k\n  cluster: {server: \"https://192.0.2.1:6443/\", certificate-authority: ca.crt}\n"
#define USER "users: [{name: u, user: {token: secret}}]\n"

static void a_kubeconfig_is_read(void **state)
{
        _cleanup_(kube_config_freep) struct kube_config *config = NULL;
        const struct fixture *fixture = *state;
        char error[KUBE_CONFIG_ERROR_MAX], path[160];

        write_file(fixture, "config",
                   "apiVersion: v1\nkind: Config\npreferences: {}\n" CONTEXT
                   "clusters: [{name: other, cluster: {}}, {name: k, cluster: {server: \"https://[2001:db8::1]/prefix//\","
                   " certificate-authority-data: \"LS0t\\nLS0K\", tls-server-name: api.example}}]\n"
                   "users: [{name: u, user: {client-certificate: client.crt, client-key: /etc/client.key, tokenFile: token}}]\n");
        assert_int_equal(kube_config_load_file(fixture->path, NULL, &config, error), 0);

        assert_string_equal(config->source, fixture->path);
        assert_string_equal(config->server, "https://[2001:db8::1]/prefix");
        assert_string_equal(config->namespace, "n");
        assert_string_equal(config->tls_server_name, "api.example");
        assert_string_equal(config->ca.data, "-----\n");
        assert_null(config->ca.file);
        snprintf(path, sizeof(path), "%s/client.crt", fixture->directory);
        assert_string_equal(config->client_certificate.file, path);
        assert_string_equal(config->client_key.file, "/etc/client.key");
        snprintf(path, sizeof(path), "%s/token", fixture->directory);
        assert_string_equal(config->token.file, path);
        assert_null(config->token.data);
}

static void a_context_can_be_named(void **state)
{
        _cleanup_(kube_config_freep) struct kube_config *config = NULL;
        const struct fixture *fixture = *state;
        char error[KUBE_CONFIG_ERROR_MAX];

        write_file(fixture, "config", "current-context: none\ncontexts: [{name: other, context: {cluster: k}}]\n" CLUSTER);
        assert_int_equal(kube_config_load_file(fixture->path, "other", &config, error), 0);
        assert_string_equal(config->namespace, "default");
        assert_null(config->token.data);
}

static void mistakes_in_a_kubeconfig_are_named(void **state)
{
        static const struct {
                const char *text;
                const char *message; /* after the file's name */
        } rows[] = {
                { "", ": is empty" },
                { "[]", ":1: is not a kubeconfig: there is no mapping at its top" },
                { "{", ":2: not valid YAML" },
                { "kind: Config\n", ":1: current-context is missing" },
                { "current-context: c\n", ":1: contexts is missing or is not a list" },
                { "current-context: c\ncontexts: {}\n", ":2: contexts is missing or is not a list" },
                { "current-context: [c]\n", ":1: kubeconfig.current-context is not a text" },
                { "current-context: c\ncontexts:\n- name: d\n", ":3: contexts has none with the name \"c\"" },
                { "current-context: c\ncontexts:\n- name: c\n", ":3: contexts \"c\" has no context" },
                { "current-context: c\ncontexts: [{name: c, context: {user: u}}]\n", ":2: context.cluster is missing" },
                { CONTEXT USER, ":1: clusters is missing or is not a list" },
                { CONTEXT "clusters: []\n" USER, ":3: clusters has none with the name \"k\"" },
                { CONTEXT "clusters: [{name: k, cluster: {}}]\n" USER, ":3: cluster.server is missing" },
                { CONTEXT "clusters: [{name: k, cluster: {server: [a]}}]\n" USER, ":3: cluster.server is not a text" },
                { CONTEXT "clusters: [{name: k, cluster: {server: \"http://a\"}}]\n" USER,
                  ":3: cluster.server: \"http://a\" does not begin with https://" },
                { CONTEXT "clusters: [{name: k, cluster: {server: \"https://a\", insecure-skip-tls-verify: true}}]\n" USER,
                  ":3: cluster.insecure-skip-tls-verify: lull always verifies the server" },
                { CONTEXT "clusters: [{name: k, cluster: {server: \"https://a\", certificate-authority-data: \"?\"}}]\n" USER,
                  ":3: cluster.certificate-authority-data is not base64 of a PEM text" },
                { CONTEXT CLUSTER, ":1: users is missing or is not a list" },
                { CONTEXT CLUSTER "users: [{name: u, user: {exec: {command: aws}}}]\n",
                  ":6: user.exec is not supported: give a token" },
                { CONTEXT CLUSTER "users: [{name: u, user: {auth-provider: {}}}]\n", ":6: user.auth-provider is not supported" },
                { CONTEXT CLUSTER "users: [{name: u, user: {username: a, password: b}}]\n", ":6: user.username is not supported" },
                { CONTEXT CLUSTER "users: [{name: u, user: {client-certificate: a}}]\n",
                  ":6: user has only one of client-certificate and client-key" },
                { CONTEXT CLUSTER "users: [{name: u, user: {token: [a]}}]\n", ":6: user.token is not a text" },
        };
        const struct fixture *fixture = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                struct kube_config *config = NULL;
                char error[KUBE_CONFIG_ERROR_MAX], expected[KUBE_CONFIG_ERROR_MAX];

                write_file(fixture, "config", rows[i].text);
                snprintf(expected, sizeof(expected), "%s%s", fixture->path, rows[i].message);
                assert_int_equal(kube_config_load_file(fixture->path, NULL, &config, error), -EINVAL);
                assert_null(config);
                if (strncmp(error, expected, strlen(expected)) != 0)
                        fail_msg("row %zu: %s instead of %s", i, error, expected);
        }
}

static void a_kubeconfig_that_is_not_there_is_named(void **state)
{
        struct kube_config *config = NULL;
        char error[KUBE_CONFIG_ERROR_MAX];

        assert_int_equal(kube_config_load_file("/nonexistent/config", NULL, &config, error), -ENOENT);
        assert_string_equal(error, "/nonexistent/config: No such file or directory");
}

static void a_pod_knows_its_server(void **state)
{
        _cleanup_(kube_config_freep) struct kube_config *config = NULL;
        const struct fixture *fixture = *state;
        char error[KUBE_CONFIG_ERROR_MAX], path[160];

        unsetenv("KUBERNETES_SERVICE_HOST");
        assert_int_equal(kube_config_load_in_cluster(fixture->directory, &config, error), -ENOENT);
        assert_non_null(strstr(error, "KUBERNETES_SERVICE_HOST"));

        setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
        setenv("KUBERNETES_SERVICE_PORT", "443", 1);
        assert_int_equal(kube_config_load_in_cluster(fixture->directory, &config, error), -ENOENT);
        assert_non_null(strstr(error, fixture->directory));

        write_file(fixture, "token", "abc");
        write_file(fixture, "namespace", "mine\n");
        assert_int_equal(kube_config_load_in_cluster(fixture->directory, &config, error), 0);
        assert_string_equal(config->server, "https://[fd00::1]:443");
        assert_string_equal(config->namespace, "mine");
        snprintf(path, sizeof(path), "%s/ca.crt", fixture->directory);
        assert_string_equal(config->ca.file, path);
        unsetenv("KUBERNETES_SERVICE_HOST");
        unsetenv("KUBERNETES_SERVICE_PORT");
}

static struct kube_credentials *credentials_in(const struct fixture *fixture)
{
        struct kube_credentials *credentials;
        struct kube_config config = { 0 };
        char token[160], ca[160];

        snprintf(token, sizeof(token), "%s/token", fixture->directory);
        snprintf(ca, sizeof(ca), "%s/ca.crt", fixture->directory);
        config.token.file = token;
        config.ca.file = ca;
        assert_int_equal(kube_credentials_new(&config, &credentials), 0);
        return credentials;
}

static void a_token_is_read_again_once_a_minute_or_when_refused(void **state)
{
        const struct fixture *fixture = *state;
        _cleanup_(kube_credentials_freep) struct kube_credentials *credentials = credentials_in(fixture);
        const char *file = NULL;

        write_file(fixture, "ca.crt", "first");
        write_file(fixture, "token", "one\nInjected: header");
        assert_int_equal(kube_credentials_refresh(credentials, NSEC_PER_SEC, &file), 0);
        assert_string_equal(kube_credentials_token(credentials), "one");

        write_file(fixture, "token", "two");
        assert_int_equal(kube_credentials_refresh(credentials, 60 * NSEC_PER_SEC, &file), 0);
        assert_string_equal(kube_credentials_token(credentials), "one");
        assert_int_equal(kube_credentials_refresh(credentials, 61 * NSEC_PER_SEC, &file), 0);
        assert_string_equal(kube_credentials_token(credentials), "two");

        write_file(fixture, "token", "three");
        kube_credentials_drop_token(credentials, "one"); /* an older one: says nothing */
        assert_int_equal(kube_credentials_refresh(credentials, 62 * NSEC_PER_SEC, &file), 0);
        assert_string_equal(kube_credentials_token(credentials), "two");
        kube_credentials_drop_token(credentials, "two");
        assert_int_equal(kube_credentials_refresh(credentials, 62 * NSEC_PER_SEC, &file), 0);
        assert_string_equal(kube_credentials_token(credentials), "three");
}

static void a_changed_authority_is_read_again_and_a_lost_one_kept(void **state)
{
        const struct fixture *fixture = *state;
        _cleanup_(kube_credentials_freep) struct kube_credentials *credentials = credentials_in(fixture);
        const char *file = NULL;
        char path[160];

        write_file(fixture, "token", "t");
        assert_int_equal(kube_credentials_refresh(credentials, 0, &file), -ENOENT);
        assert_non_null(strstr(file, "ca.crt"));

        write_file(fixture, "ca.crt", "first");
        assert_int_equal(kube_credentials_refresh(credentials, 0, &file), 0);
        write_file(fixture, "ca.crt", "second one");
        assert_int_equal(kube_credentials_refresh(credentials, 0, &file), 0);
        assert_string_equal(kube_credentials_ca(credentials), "second one");

        snprintf(path, sizeof(path), "%s/ca.crt", fixture->directory);
        unlink(path);
        assert_int_equal(kube_credentials_refresh(credentials, 0, &file), 0);
        assert_string_equal(kube_credentials_ca(credentials), "second one");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_kubeconfig_is_read, setup, teardown),
                cmocka_unit_test_setup_teardown(a_context_can_be_named, setup, teardown),
                cmocka_unit_test_setup_teardown(mistakes_in_a_kubeconfig_are_named, setup, teardown),
                cmocka_unit_test(a_kubeconfig_that_is_not_there_is_named),
                cmocka_unit_test_setup_teardown(a_pod_knows_its_server, setup, teardown),
                cmocka_unit_test_setup_teardown(a_token_is_read_again_once_a_minute_or_when_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(a_changed_authority_is_read_again_and_a_lost_one_kept, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
