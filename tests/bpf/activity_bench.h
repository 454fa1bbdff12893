/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of a workload and of others, all held by this process: a socket belongs to the cgroup its maker was in. */
#pragma once

#include "machine.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "activity/activity.h"
#include "base/cgroup.h"
#include "base/time.h"

enum { PORT = 7000, OTHER_PORT = 7001, ELSEWHERE_PORT = 7002, DEADLINE_SECONDS = 20 };

struct bound {
        uint16_t port;
        uint8_t protocol;
};

struct setup {
        char inside[256], outside[256]; /* cgroups */
        sd_event *event;
        struct activity *activity;
        struct workload *workload;
        struct workload_port ports[2];
        struct ignore_rule rule;
        struct policy policy;
        struct workload_settings settings;
        struct bound bound;
};

static inline void enter(const char *cgroup)
{
        char path[320];
        FILE *file;

        snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
        file = fopen(path, "we");
        assert_non_null(file);
        assert_true(fprintf(file, "0") > 0);
        assert_int_equal(fclose(file), 0);
}

static inline void on_bound(struct workload *workload, uint16_t port, uint8_t protocol, void *userdata)
{
        struct setup *setup = userdata;

        setup->bound = (struct bound){ port, protocol };
}

static inline void start(struct setup *setup)
{
        static const struct activity_callbacks callbacks = { .bound = on_bound };

        assert_int_equal(activity_new(setup->event, MACHINE_BPFFS, &callbacks, &setup->activity), 0);
        assert_int_equal(workload_new(setup->activity, &setup->settings, setup->inside, setup, &setup->workload), 0);
}

static inline void stop(struct setup *setup, bool keep_pins)
{
        setup->workload = workload_free(setup->workload, keep_pins);
        setup->activity = activity_free(setup->activity, keep_pins);
}

static inline int set_up(void **state)
{
        struct setup *setup = calloc(1, sizeof(*setup));
        char *root;

        assert_int_equal(cgroup_find_root(&root), 0);
        snprintf(setup->inside, sizeof(setup->inside), "%s/lull-test-activity-%d", root, getpid());
        snprintf(setup->outside, sizeof(setup->outside), "%s/lull-test-outside-%d", root, getpid());
        free(root);
        assert_int_equal(mkdir(setup->inside, 0755), 0);
        assert_int_equal(mkdir(setup->outside, 0755), 0);
        enter(setup->outside);

        setup->ports[0] = (struct workload_port){ PORT, IPPROTO_TCP };
        setup->ports[1] = (struct workload_port){ PORT, IPPROTO_UDP };
        setup->policy = (struct policy){ .name = (char *)"web",
                                         .ignore = &setup->rule,
                                         .idle = { .after_ns = 60 * NSEC_PER_SEC, .request_timeout_ns = 60 * NSEC_PER_SEC } };
        setup->settings =
                (struct workload_settings){ .name = "web", .policy = &setup->policy, .ports = setup->ports, .n_ports = 2 };
        assert_int_equal(sd_event_new(&setup->event), 0);
        start(setup);
        *state = setup;
        return 0;
}

static inline int tear_down(void **state)
{
        struct setup *setup = *state;
        char path[300];

        stop(setup, false);
        sd_event_unref(setup->event);
        snprintf(path, sizeof(path), "%s/..", setup->outside);
        enter(path);
        rmdir(setup->inside);
        assert_int_equal(rmdir(setup->outside), 0);
        free(setup);
        return 0;
}

static inline int bound_socket(const char *cgroup, const struct setup *setup, int type, uint16_t port)
{
        struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_ANY_INIT };
        int fd, one = 1;

        enter(cgroup);
        fd = socket(AF_INET6, type | SOCK_CLOEXEC, 0);
        enter(setup->outside);
        assert_true(fd >= 0);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        if (type == SOCK_STREAM)
                assert_int_equal(listen(fd, 16), 0);
        return fd;
}

static inline int connected_socket(const char *cgroup, const struct setup *setup, int type, uint16_t port)
{
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = { htonl(INADDR_LOOPBACK) } };
        int fd;

        enter(cgroup);
        fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
        enter(setup->outside);
        assert_true(fd >= 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        return fd;
}

struct pair {
        int listener, client, server;
};

static inline struct pair connect_pair(const struct setup *setup, const char *server, const char *client, uint16_t port)
{
        struct pair pair = { .listener = bound_socket(server, setup, SOCK_STREAM, port) };

        pair.client = connected_socket(client, setup, SOCK_STREAM, port);
        pair.server = accept(pair.listener, NULL, NULL);
        assert_true(pair.server >= 0);
        return pair;
}

static inline void close_pair(struct pair *pair)
{
        close(pair->client);
        close(pair->server);
        close(pair->listener);
}

static inline void say(int from, int to, const char *text)
{
        char buffer[256];

        assert_int_equal(send(from, text, strlen(text), 0), strlen(text));
        assert_int_equal(recv(to, buffer, sizeof(buffer), 0), strlen(text));
}

static inline struct workload_snapshot look(const struct setup *setup)
{
        struct workload_snapshot snapshot;

        assert_int_equal(workload_read(setup->workload, now_monotonic_ns(), &snapshot), 0);
        return snapshot;
}

#define PROMISE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
