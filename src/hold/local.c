/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/local.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "lull_wire.h"

enum {
        BUFFER_SIZE = 32 * 1024,
        GROW_BY = 64,
        MAPPED_BITS = 96,
        READ_ATTEMPTS = 8, /* of a table that changes while it is read */
};

struct local {
        int map_fd; /* not owned */
        struct mnl_socket *netlink;
        sd_event_source *source;
        bool overflow_logged;
        _Alignas(struct nlmsghdr) uint8_t buffer[BUFFER_SIZE];
};

static void mnl_closep(struct mnl_socket **netlink)
{
        if (*netlink)
                mnl_socket_close(*netlink);
}

/* Whether @header is about a local route, and its prefix. */
static bool read_route(const struct nlmsghdr *header, struct prefix *ret_prefix)
{
        const struct rtmsg *route = mnl_nlmsg_get_payload(header);
        const struct nlattr *attribute, *destination = NULL;
        size_t size;

        if (mnl_nlmsg_get_payload_len(header) < sizeof(*route) || route->rtm_type != RTN_LOCAL ||
            (route->rtm_family != AF_INET && route->rtm_family != AF_INET6))
                return false;

        size = route->rtm_family == AF_INET ? 4 : 16;
        mnl_attr_for_each(attribute, header, sizeof(*route)) if (mnl_attr_get_type(attribute) == RTA_DST &&
                                                                 mnl_attr_get_payload_len(attribute) >= size) destination =
                attribute;
        if (!destination)
                return false;

        *ret_prefix = (struct prefix){
                .address = address_from_bytes(route->rtm_family, mnl_attr_get_payload(destination)),
                .length = (uint8_t)(route->rtm_dst_len + (route->rtm_family == AF_INET ? MAPPED_BITS : 0)),
        };
        return true;
}

static int add_route(const struct nlmsghdr *header, void *data)
{
        struct local_prefixes *prefixes = data;
        struct prefix prefix = { 0 }, *grown;

        if (header->nlmsg_type != RTM_NEWROUTE || !read_route(header, &prefix))
                return MNL_CB_OK;

        if (prefixes->n % GROW_BY == 0) {
                grown = reallocarray(prefixes->prefixes, prefixes->n + GROW_BY, sizeof(*grown));
                if (!grown) {
                        errno = ENOMEM;
                        return MNL_CB_ERROR;
                }
                prefixes->prefixes = grown;
        }
        prefixes->prefixes[prefixes->n++] = prefix;
        return MNL_CB_OK;
}

static int dump_routes(struct mnl_socket *netlink, uint8_t family, unsigned sequence, void *buffer, struct local_prefixes *prefixes)
{
        struct nlmsghdr *header = mnl_nlmsg_put_header(buffer);
        struct rtmsg *route = mnl_nlmsg_put_extra_header(header, sizeof(*route));
        unsigned port = mnl_socket_get_portid(netlink);
        ssize_t n;
        int r;

        header->nlmsg_type = RTM_GETROUTE;
        header->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
        header->nlmsg_seq = sequence;
        route->rtm_family = family;
        route->rtm_type = RTN_LOCAL;
        if (mnl_socket_sendto(netlink, header, header->nlmsg_len) < 0)
                return -errno;

        do {
                n = mnl_socket_recvfrom(netlink, buffer, BUFFER_SIZE);
                if (n < 0)
                        return -errno;
                r = mnl_cb_run(buffer, (size_t)n, sequence, port, add_route, prefixes);
                if (r < 0)
                        return -errno;
        } while (r != MNL_CB_STOP);
        return 0;
}

static int prefix_compare(const void *a, const void *b)
{
        return memcmp(a, b, sizeof(struct prefix));
}

static void sort_unique(struct local_prefixes *prefixes)
{
        size_t kept = 0;

        if (prefixes->n == 0)
                return;

        qsort(prefixes->prefixes, prefixes->n, sizeof(*prefixes->prefixes), prefix_compare);
        for (size_t i = 1; i < prefixes->n; i++)
                if (prefix_compare(&prefixes->prefixes[kept], &prefixes->prefixes[i]) != 0)
                        prefixes->prefixes[++kept] = prefixes->prefixes[i];
        prefixes->n = kept + 1;
}

static int read_once(struct local_prefixes **ret_prefixes)
{
        _cleanup_(local_prefixes_freep) struct local_prefixes *prefixes = calloc(1, sizeof(*prefixes));
        _cleanup_(mnl_closep) struct mnl_socket *netlink = NULL;
        _cleanup_(freep) void *buffer = malloc(BUFFER_SIZE);
        int strict = 1, r;

        if (!prefixes || !buffer)
                return -ENOMEM;

        netlink = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
        if (!netlink || mnl_socket_bind(netlink, 0, MNL_SOCKET_AUTOPID) < 0)
                return -errno;
        /* Lets the kernel leave out all other routes; where it cannot, read_route() does. */
        (void)setsockopt(mnl_socket_get_fd(netlink), SOL_NETLINK, NETLINK_GET_STRICT_CHK, &strict, sizeof(strict));

        r = dump_routes(netlink, AF_INET, 1, buffer, prefixes);
        if (r >= 0)
                r = dump_routes(netlink, AF_INET6, 2, buffer, prefixes);
        if (r < 0)
                return r;

        sort_unique(prefixes);
        *ret_prefixes = TAKE_PTR(prefixes);
        return 0;
}

int local_prefixes_read(struct local_prefixes **ret_prefixes)
{
        int r = -EINTR;

        for (unsigned i = 0; r == -EINTR && i < READ_ATTEMPTS; i++)
                r = read_once(ret_prefixes);
        return r;
}

struct local_prefixes *local_prefixes_free(struct local_prefixes *prefixes)
{
        if (prefixes)
                free(prefixes->prefixes);
        free(prefixes);
        return NULL;
}

bool local_prefixes_contain(const struct address *address, void *prefixes)
{
        const struct local_prefixes *local = prefixes;

        if (address_is_wildcard(address))
                return true;
        for (size_t i = 0; i < local->n; i++)
                if (prefix_contains(&local->prefixes[i], address))
                        return true;
        return false;
}

static struct lull_local_key local_key(const struct prefix *prefix)
{
        struct lull_local_key key = { .prefix_length = prefix->length };

        memcpy(key.address, prefix->address.bytes, sizeof(key.address));
        return key;
}

static bool is_wanted(const struct local_prefixes *prefixes, const struct lull_local_key *key)
{
        struct prefix prefix;

        memset(&prefix, 0, sizeof(prefix));
        memcpy(prefix.address.bytes, key->address, sizeof(prefix.address.bytes));
        prefix.length = (uint8_t)key->prefix_length;
        return prefixes->n > 0 && bsearch(&prefix, prefixes->prefixes, prefixes->n, sizeof(prefix), prefix_compare);
}

/* Deletes before it adds, so that a full map has room; a prefix that stays is never missing in between. */
static int local_sync(struct local *local)
{
        _cleanup_(local_prefixes_freep) struct local_prefixes *prefixes = NULL;
        struct lull_local_key key, next, *previous = NULL;
        uint8_t present = 1;
        int r;

        r = local_prefixes_read(&prefixes);
        if (r < 0)
                return r;

        while (bpf_map_get_next_key(local->map_fd, previous, &next) == 0) {
                if (!is_wanted(prefixes, &next)) {
                        (void)bpf_map_delete_elem(local->map_fd, &next);
                        continue; /* from the same predecessor again */
                }
                key = next;
                previous = &key;
        }

        for (size_t i = 0; i < prefixes->n; i++) {
                key = local_key(&prefixes->prefixes[i]);
                r = bpf_map_update_elem(local->map_fd, &key, &present, BPF_ANY);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void local_update(struct local *local)
{
        int r = local_sync(local);

        if (r >= 0 || local->overflow_logged)
                return;

        log_warning("cannot follow this host's local addresses, wildcard frontends on new ones are not held: %s", strerror(-r));
        local->overflow_logged = true;
}

static int note_change(const struct nlmsghdr *header, void *data)
{
        struct prefix prefix;
        bool *changed = data;

        if (header->nlmsg_type == RTM_NEWROUTE || header->nlmsg_type == RTM_DELROUTE)
                *changed |= read_route(header, &prefix);
        return MNL_CB_OK;
}

static int on_routes(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct local *local = userdata;
        bool changed = false;
        ssize_t n;

        while ((n = recv(fd, local->buffer, sizeof(local->buffer), MSG_DONTWAIT)) > 0)
                mnl_cb_run(local->buffer, (size_t)n, 0, 0, note_change, &changed);
        if (n < 0 && errno == ENOBUFS)
                changed = true;

        if (changed)
                local_update(local);
        return 0;
}

int local_new(sd_event *event, int map_fd, struct local **ret_local)
{
        _cleanup_(local_freep) struct local *local = calloc(1, sizeof(*local));
        int r;

        if (!local)
                return -ENOMEM;

        local->map_fd = map_fd;
        local->netlink = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (!local->netlink || mnl_socket_bind(local->netlink, RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE, MNL_SOCKET_AUTOPID) < 0)
                return -errno;

        r = sd_event_add_io(event, &local->source, mnl_socket_get_fd(local->netlink), EPOLLIN, on_routes, local);
        if (r < 0)
                return r;

        local_update(local);
        *ret_local = TAKE_PTR(local);
        return 0;
}

struct local *local_free(struct local *local)
{
        if (!local)
                return NULL;

        sd_event_source_disable_unref(local->source);
        if (local->netlink)
                mnl_socket_close(local->netlink);
        free(local);
        return NULL;
}
