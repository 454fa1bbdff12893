/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/conntrack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>
#include <string.h>

enum {
        REQUEST_SIZE = 1024,
        BUFFER_SIZE = 32 * 1024,
        EVENT_BATCH = 64,                 /* reads before the event loop gets its turn */
        EVENT_RECEIVE_BYTES = 512 * 1024, /* a busy host has thousands of connections a second */
        MAPPED_IPV4 = 12,                 /* offset of an IPv4 address in struct address */
};

struct conntrack {
        struct mnl_socket *requests, *events;
        sd_event_source *source;
        conntrack_callback callback;
        void *userdata;
        bool followed;
        unsigned sequence;
        _Alignas(struct nlmsghdr) uint8_t request[REQUEST_SIZE];
        _Alignas(struct nlmsghdr) uint8_t buffer[BUFFER_SIZE];
};

static int on_events(sd_event_source *source, int fd, uint32_t revents, void *userdata);

static struct mnl_socket *open_socket(int flags)
{
        struct mnl_socket *netlink = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC | flags);

        if (netlink && mnl_socket_bind(netlink, 0, MNL_SOCKET_AUTOPID) < 0) {
                int error = errno;

                mnl_socket_close(netlink);
                errno = error;
                return NULL;
        }
        return netlink;
}

int conntrack_new(sd_event *event, conntrack_callback callback, void *userdata, struct conntrack **ret_conntrack)
{
        _cleanup_(conntrack_freep) struct conntrack *conntrack = calloc(1, sizeof(*conntrack));
        const struct timeval patience = { .tv_usec = 100 * 1000 }; /* the kernel answers at once, or its answer is lost */
        int size = EVENT_RECEIVE_BYTES, r;

        if (!conntrack)
                return -ENOMEM;

        conntrack->callback = callback;
        conntrack->userdata = userdata;
        conntrack->requests = open_socket(0);
        conntrack->events = open_socket(SOCK_NONBLOCK);
        if (!conntrack->requests || !conntrack->events)
                return -errno;
        (void)setsockopt(mnl_socket_get_fd(conntrack->requests), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        (void)setsockopt(mnl_socket_get_fd(conntrack->events), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));

        r = sd_event_add_io(event, &conntrack->source, mnl_socket_get_fd(conntrack->events), EPOLLIN, on_events, conntrack);
        if (r >= 0)
                r = sd_event_source_set_priority(conntrack->source, SD_EVENT_PRIORITY_IMPORTANT);
        if (r < 0)
                return r;

        *ret_conntrack = TAKE_PTR(conntrack);
        return 0;
}

struct conntrack *conntrack_free(struct conntrack *conntrack)
{
        if (!conntrack)
                return NULL;

        sd_event_source_disable_unref(conntrack->source);
        if (conntrack->requests)
                mnl_socket_close(conntrack->requests);
        if (conntrack->events)
                mnl_socket_close(conntrack->events);
        free(conntrack);
        return NULL;
}

static int join(struct conntrack *conntrack, unsigned group, bool join_it)
{
        int option = join_it ? NETLINK_ADD_MEMBERSHIP : NETLINK_DROP_MEMBERSHIP;

        return mnl_socket_setsockopt(conntrack->events, option, &group, sizeof(group)) < 0 ? -errno : 0;
}

int conntrack_follow(struct conntrack *conntrack, bool follow)
{
        int r;

        if (conntrack->followed == follow)
                return 0;

        r = join(conntrack, NFNLGRP_CONNTRACK_UPDATE, follow);
        if (r >= 0)
                r = join(conntrack, NFNLGRP_CONNTRACK_DESTROY, follow);
        if (r >= 0)
                conntrack->followed = follow;
        return r;
}

static bool is_ipv4(const struct flow *flow)
{
        return address_is_ipv4(&flow->destination);
}

static struct nlmsghdr *begin(struct conntrack *conntrack, uint16_t message, uint16_t flags, const struct flow *flow)
{
        struct nlmsghdr *header = mnl_nlmsg_put_header(conntrack->request);
        struct nfgenmsg *netfilter = mnl_nlmsg_put_extra_header(header, sizeof(*netfilter));

        header->nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | message;
        header->nlmsg_flags = NLM_F_REQUEST | flags;
        header->nlmsg_seq = ++conntrack->sequence;
        netfilter->nfgen_family = is_ipv4(flow) ? AF_INET : AF_INET6;
        netfilter->version = NFNETLINK_V0;
        return header;
}

static void put_address(struct nlmsghdr *header, bool ipv4, uint16_t ipv4_type, uint16_t ipv6_type, const struct address *address)
{
        if (ipv4)
                mnl_attr_put(header, ipv4_type, 4, address->bytes + MAPPED_IPV4);
        else
                mnl_attr_put(header, ipv6_type, 16, address->bytes);
}

static void put_tuple(struct nlmsghdr *header, uint16_t type, const struct flow *flow)
{
        struct nlattr *tuple = mnl_attr_nest_start(header, type), *nest;
        bool ipv4 = is_ipv4(flow);

        nest = mnl_attr_nest_start(header, CTA_TUPLE_IP);
        put_address(header, ipv4, CTA_IP_V4_SRC, CTA_IP_V6_SRC, &flow->source);
        put_address(header, ipv4, CTA_IP_V4_DST, CTA_IP_V6_DST, &flow->destination);
        mnl_attr_nest_end(header, nest);

        nest = mnl_attr_nest_start(header, CTA_TUPLE_PROTO);
        mnl_attr_put_u8(header, CTA_PROTO_NUM, flow->protocol);
        mnl_attr_put_u16(header, CTA_PROTO_SRC_PORT, htons(flow->source_port));
        mnl_attr_put_u16(header, CTA_PROTO_DST_PORT, htons(flow->destination_port));
        mnl_attr_nest_end(header, nest);
        mnl_attr_nest_end(header, tuple);
}

/* @port: 0 leaves it to the kernel. */
static void put_nat(struct nlmsghdr *header, uint16_t type, bool ipv4, const struct address *address, uint16_t port)
{
        struct nlattr *nat = mnl_attr_nest_start(header, type), *nest;

        put_address(header, ipv4, CTA_NAT_V4_MINIP, CTA_NAT_V6_MINIP, address);
        put_address(header, ipv4, CTA_NAT_V4_MAXIP, CTA_NAT_V6_MAXIP, address);
        if (port != 0) {
                nest = mnl_attr_nest_start(header, CTA_NAT_PROTO);
                mnl_attr_put_u16(header, CTA_PROTONAT_PORT_MIN, htons(port));
                mnl_attr_put_u16(header, CTA_PROTONAT_PORT_MAX, htons(port));
                mnl_attr_nest_end(header, nest);
        }
        mnl_attr_nest_end(header, nat);
}

static void put_tcp_state(struct nlmsghdr *header, uint8_t state)
{
        struct nlattr *information = mnl_attr_nest_start(header, CTA_PROTOINFO);
        struct nlattr *tcp = mnl_attr_nest_start(header, CTA_PROTOINFO_TCP);

        mnl_attr_put_u8(header, CTA_PROTOINFO_TCP_STATE, state);
        mnl_attr_nest_end(header, tcp);
        mnl_attr_nest_end(header, information);
}

/* An answer that came too late for the request it belongs to. */
static bool is_stale(const struct conntrack *conntrack, ssize_t n, uint32_t sequence)
{
        const struct nlmsghdr *header = (const struct nlmsghdr *)conntrack->buffer;

        return mnl_nlmsg_ok(header, (int)n) && header->nlmsg_seq != sequence;
}

/* Sends what begin() began and handles the one message that comes back. */
static int run(struct conntrack *conntrack, const struct nlmsghdr *header, mnl_cb_t callback, void *userdata)
{
        uint32_t sequence = header->nlmsg_seq;
        ssize_t n;

        if (mnl_socket_sendto(conntrack->requests, header, header->nlmsg_len) < 0)
                return -errno;

        do
                n = mnl_socket_recvfrom(conntrack->requests, conntrack->buffer, sizeof(conntrack->buffer));
        while ((n < 0 && errno == EINTR) || (n >= 0 && is_stale(conntrack, n, sequence)));
        if (n < 0)
                return errno == EAGAIN ? -ETIMEDOUT : -errno;
        return mnl_cb_run(conntrack->buffer, (size_t)n, sequence, mnl_socket_get_portid(conntrack->requests), callback, userdata) <
                               0
                       ? -errno
                       : 0;
}

int conntrack_create(struct conntrack *conntrack, const struct flow *flow, const struct conntrack_translation *translation)
{
        struct nlmsghdr *header = begin(conntrack, IPCTNL_MSG_CT_NEW, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, flow);
        struct flow answer = {
                .source = flow->destination,
                .destination = flow->source,
                .source_port = flow->destination_port,
                .destination_port = flow->source_port,
                .protocol = flow->protocol,
        };

        put_tuple(header, CTA_TUPLE_ORIG, flow);
        put_tuple(header, CTA_TUPLE_REPLY, &answer);
        mnl_attr_put_u32(header, CTA_TIMEOUT, htonl(translation->timeout_seconds));
        if (flow->protocol == IPPROTO_TCP)
                put_tcp_state(header, TCP_CONNTRACK_NONE);
        put_nat(header, CTA_NAT_DST, is_ipv4(flow), &translation->endpoint, translation->port);
        if (translation->masquerade)
                put_nat(header, CTA_NAT_SRC, is_ipv4(flow), translation->masquerade, 0);
        return run(conntrack, header, NULL, NULL);
}

int conntrack_delete(struct conntrack *conntrack, const struct flow *flow)
{
        struct nlmsghdr *header = begin(conntrack, IPCTNL_MSG_CT_DELETE, NLM_F_ACK, flow);

        put_tuple(header, CTA_TUPLE_ORIG, flow);
        return run(conntrack, header, NULL, NULL);
}

static void read_address(const struct nlattr *attribute, struct address *address)
{
        uint16_t length = mnl_attr_get_payload_len(attribute);

        if (length == 4 || length == 16)
                *address = address_from_bytes(length == 4 ? AF_INET : AF_INET6, mnl_attr_get_payload(attribute));
}

static uint16_t read_port(const struct nlattr *attribute)
{
        return mnl_attr_get_payload_len(attribute) >= sizeof(uint16_t) ? ntohs(mnl_attr_get_u16(attribute)) : 0;
}

static int read_tuple_attribute(const struct nlattr *attribute, void *data)
{
        struct flow *flow = data;
        const struct nlattr *part;

        switch (mnl_attr_get_type(attribute)) {
        case CTA_TUPLE_IP:
                mnl_attr_for_each_nested(part, attribute)
                {
                        uint16_t type = mnl_attr_get_type(part);

                        if (type == CTA_IP_V4_SRC || type == CTA_IP_V6_SRC)
                                read_address(part, &flow->source);
                        else if (type == CTA_IP_V4_DST || type == CTA_IP_V6_DST)
                                read_address(part, &flow->destination);
                }
                break;
        case CTA_TUPLE_PROTO:
                mnl_attr_for_each_nested(part, attribute)
                {
                        uint16_t type = mnl_attr_get_type(part);

                        if (type == CTA_PROTO_NUM && mnl_attr_get_payload_len(part) >= sizeof(uint8_t))
                                flow->protocol = mnl_attr_get_u8(part);
                        else if (type == CTA_PROTO_SRC_PORT)
                                flow->source_port = read_port(part);
                        else if (type == CTA_PROTO_DST_PORT)
                                flow->destination_port = read_port(part);
                }
                break;
        default:
                break;
        }
        return MNL_CB_OK;
}

static int read_tcp_attribute(const struct nlattr *attribute, void *data)
{
        struct conntrack_entry *entry = data;
        const struct nlattr *part;

        if (mnl_attr_get_type(attribute) != CTA_PROTOINFO_TCP)
                return MNL_CB_OK;
        mnl_attr_for_each_nested(part, attribute) if (mnl_attr_get_type(part) == CTA_PROTOINFO_TCP_STATE &&
                                                      mnl_attr_get_payload_len(part) >= sizeof(uint8_t)) entry->tcp_state =
                mnl_attr_get_u8(part);
        return MNL_CB_OK;
}

static int read_entry_attribute(const struct nlattr *attribute, void *data)
{
        struct conntrack_entry *entry = data;

        switch (mnl_attr_get_type(attribute)) {
        case CTA_TUPLE_ORIG:
                return mnl_attr_parse_nested(attribute, read_tuple_attribute, &entry->original);
        case CTA_TUPLE_REPLY:
                return mnl_attr_parse_nested(attribute, read_tuple_attribute, &entry->reply);
        case CTA_STATUS:
                if (mnl_attr_get_payload_len(attribute) >= sizeof(uint32_t))
                        entry->status = ntohl(mnl_attr_get_u32(attribute));
                return MNL_CB_OK;
        case CTA_PROTOINFO:
                return mnl_attr_parse_nested(attribute, read_tcp_attribute, entry);
        default:
                return MNL_CB_OK;
        }
}

static int read_entry(const struct nlmsghdr *header, void *data)
{
        struct conntrack_entry *entry = data;

        if (mnl_nlmsg_get_payload_len(header) < sizeof(struct nfgenmsg))
                return MNL_CB_OK;
        return mnl_attr_parse(header, sizeof(struct nfgenmsg), read_entry_attribute, entry);
}

int conntrack_find(struct conntrack *conntrack, const struct flow *flow, struct conntrack_entry *ret_entry)
{
        struct nlmsghdr *header = begin(conntrack, IPCTNL_MSG_CT_GET, 0, flow);
        struct conntrack_entry entry = { 0 };
        int r;

        put_tuple(header, CTA_TUPLE_ORIG, flow);
        r = run(conntrack, header, read_entry, &entry);
        if (r < 0)
                return r;
        if (!flow_equal(&entry.original, flow))
                return -ENOENT; /* the kernel finds entries by their answers too */

        *ret_entry = entry;
        return 0;
}

static int on_event(const struct nlmsghdr *header, void *data)
{
        struct conntrack *conntrack = data;
        struct conntrack_entry entry = { 0 };
        uint16_t message = header->nlmsg_type & 0xff;

        if (header->nlmsg_type >> 8 != NFNL_SUBSYS_CTNETLINK || read_entry(header, &entry) < 0)
                return MNL_CB_OK;
        conntrack->callback(message == IPCTNL_MSG_CT_DELETE ? CONNTRACK_DESTROYED : CONNTRACK_UPDATED, &entry, conntrack->userdata);
        return MNL_CB_OK;
}

static int on_events(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct conntrack *conntrack = userdata;
        _Alignas(struct nlmsghdr) uint8_t buffer[BUFFER_SIZE]; /* the callback makes requests of its own */
        ssize_t n;

        for (unsigned i = 0; i < EVENT_BATCH; i++) {
                n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
                if (n < 0 && errno == ENOBUFS)
                        conntrack->callback(CONNTRACK_LOST, NULL, conntrack->userdata);
                else if (n <= 0)
                        break;
                else
                        (void)mnl_cb_run(buffer, (size_t)n, 0, 0, on_event, conntrack);
        }
        return 0;
}

bool conntrack_is_answered(const struct conntrack_entry *entry)
{
        return entry->status & IPS_SEEN_REPLY;
}
