/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "hold/scope.h"

enum { BUFFER_SIZE = 32 * 1024 };

struct sockets {
        struct mnl_socket *netlink;
        unsigned sequence;
        _Alignas(struct nlmsghdr) uint8_t buffer[BUFFER_SIZE];
};

/* What one inet_diag_msg says of a socket. */
struct socket_report {
        uint8_t family;
        uint8_t state; /* TCP_LISTEN, … */
        struct address local, remote;
        bool v6_only;
        uint32_t receive_queue, send_queue; /* TCP listeners: waiting for accept(), and the backlog */
        uint32_t memory_used, memory_limit; /* of the receive buffer */
        uint64_t cgroup, inode;
        uid_t uid;
};

int sockets_new(struct sockets **ret_sockets)
{
        _cleanup_(sockets_freep) struct sockets *sockets = calloc(1, sizeof(*sockets));

        if (!sockets)
                return -ENOMEM;

        sockets->netlink = mnl_socket_open2(NETLINK_SOCK_DIAG, SOCK_CLOEXEC);
        if (!sockets->netlink || mnl_socket_bind(sockets->netlink, 0, MNL_SOCKET_AUTOPID) < 0)
                return -errno;

        *ret_sockets = TAKE_PTR(sockets);
        return 0;
}

struct sockets *sockets_free(struct sockets *sockets)
{
        if (!sockets)
                return NULL;
        if (sockets->netlink)
                mnl_socket_close(sockets->netlink);
        free(sockets);
        return NULL;
}

static struct address address_of(uint8_t family, const uint32_t *words)
{
        return address_from_bytes(family == AF_INET ? AF_INET : AF_INET6, words);
}

static int read_attribute(const struct nlattr *attribute, void *data)
{
        struct socket_report *report = data;
        const uint32_t *memory = mnl_attr_get_payload(attribute);
        uint16_t length = mnl_attr_get_payload_len(attribute);

        switch (mnl_attr_get_type(attribute)) {
        case INET_DIAG_SKV6ONLY:
                report->v6_only = length >= sizeof(uint8_t) && mnl_attr_get_u8(attribute);
                break;
        case INET_DIAG_CGROUP_ID:
                if (length >= sizeof(uint64_t))
                        report->cgroup = mnl_attr_get_u64(attribute);
                break;
        case INET_DIAG_SKMEMINFO:
                if (length >= (SK_MEMINFO_RCVBUF + 1) * sizeof(*memory)) {
                        report->memory_used = memory[SK_MEMINFO_RMEM_ALLOC];
                        report->memory_limit = memory[SK_MEMINFO_RCVBUF];
                }
                break;
        default:
                break;
        }
        return MNL_CB_OK;
}

static int read_report(const struct nlmsghdr *header, struct socket_report *ret_report)
{
        const struct inet_diag_msg *message = mnl_nlmsg_get_payload(header);

        if (mnl_nlmsg_get_payload_len(header) < sizeof(*message))
                return -EBADMSG;

        *ret_report = (struct socket_report){
                .family = message->idiag_family,
                .state = message->idiag_state,
                .local = address_of(message->idiag_family, message->id.idiag_src),
                .remote = address_of(message->idiag_family, message->id.idiag_dst),
                .receive_queue = message->idiag_rqueue,
                .send_queue = message->idiag_wqueue,
                .inode = message->idiag_inode,
                .uid = message->idiag_uid,
        };
        mnl_attr_parse(header, sizeof(*message), read_attribute, ret_report);
        return 0;
}

static struct inet_diag_req_v2 *begin_request(struct sockets *sockets, struct nlmsghdr **ret_header, uint8_t family,
                                              uint8_t protocol)
{
        struct nlmsghdr *header = mnl_nlmsg_put_header(sockets->buffer);
        struct inet_diag_req_v2 *request = mnl_nlmsg_put_extra_header(header, sizeof(*request));

        header->nlmsg_type = SOCK_DIAG_BY_FAMILY;
        header->nlmsg_flags = NLM_F_REQUEST;
        header->nlmsg_seq = ++sockets->sequence;
        request->sdiag_family = family;
        request->sdiag_protocol = protocol;
        request->idiag_ext = 1 << (INET_DIAG_SKMEMINFO - 1);
        request->idiag_states = UINT32_MAX;
        request->id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
        request->id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
        *ret_header = header;
        return request;
}

static void put_address(const struct address *address, uint32_t *words)
{
        if (address_is_ipv4(address))
                memcpy(words, address->bytes + 12, 4);
        else
                memcpy(words, address->bytes, 16);
}

static int read_one(const struct nlmsghdr *header, void *data)
{
        int r = read_report(header, data);

        if (r < 0) {
                errno = -r;
                return MNL_CB_ERROR;
        }
        return MNL_CB_STOP;
}

/* Receives until @read stops, the dump ends or an error is reported. */
static int receive(struct sockets *sockets, mnl_cb_t read, void *data)
{
        unsigned port = mnl_socket_get_portid(sockets->netlink);
        ssize_t n;
        int r;

        do {
                n = mnl_socket_recvfrom(sockets->netlink, sockets->buffer, sizeof(sockets->buffer));
                if (n < 0)
                        return -errno;
                r = mnl_cb_run(sockets->buffer, (size_t)n, sockets->sequence, port, read, data);
                if (r < 0 && errno != ESRCH && errno != EPROTO)
                        return -errno;
                /* ESRCH and EPROTO: an answer to an earlier request that was given up. The next message is ours. */
        } while (r != MNL_CB_STOP);
        return 0;
}

/* The one socket that a packet from (@remote) to (@local) would reach: a connection, or else a listener or an unconnected socket. */
static int look_up(struct sockets *sockets, uint8_t protocol, const struct address *local, uint16_t local_port,
                   const struct address *remote, uint16_t remote_port, uint32_t ifindex, struct socket_report *ret_report)
{
        uint8_t family = address_is_ipv4(local) ? AF_INET : AF_INET6;
        struct nlmsghdr *header;
        struct inet_diag_req_v2 *request = begin_request(sockets, &header, family, protocol);
        /* UDP takes the two ends the other way round, "for historical reasons" (udp_dump_one() in net/ipv4/udp_diag.c). */
        bool swapped = protocol == IPPROTO_UDP;

        put_address(local, swapped ? request->id.idiag_dst : request->id.idiag_src);
        put_address(remote, swapped ? request->id.idiag_src : request->id.idiag_dst);
        request->id.idiag_sport = htons(swapped ? remote_port : local_port);
        request->id.idiag_dport = htons(swapped ? local_port : remote_port);
        request->id.idiag_if = ifindex;

        if (mnl_socket_sendto(sockets->netlink, header, header->nlmsg_len) < 0)
                return -errno;
        return receive(sockets, read_one, ret_report);
}

struct listener_search {
        const struct frontend *frontend;
        struct listener listener;
};

static bool takes_frontend(const struct socket_report *report, const struct frontend *frontend)
{
        bool ipv4 = address_is_ipv4(&frontend->address), wildcard = address_is_wildcard(&frontend->address);

        if (address_equal(&report->local, &frontend->address))
                return true;
        if (!address_is_wildcard(&report->local))
                return false;
        if (report->family == AF_INET)
                return ipv4 || wildcard; /* [::] stands for IPv4 too */
        return !ipv4 || !report->v6_only;
}

static int read_listener(const struct nlmsghdr *header, void *data)
{
        struct listener_search *search = data;
        struct listener *listener = &search->listener;
        struct socket_report report;
        bool tcp = search->frontend->protocol == IPPROTO_TCP;
        uint32_t queued, limit;

        if (read_report(header, &report) < 0 || report.state != (tcp ? TCP_LISTEN : TCP_CLOSE) ||
            !takes_frontend(&report, search->frontend))
                return MNL_CB_OK;

        queued = tcp ? report.receive_queue : report.memory_used;
        limit = tcp ? report.send_queue : report.memory_limit;
        if (listener->count == 0)
                listener->cgroup = report.cgroup;
        if (listener->count == 0 || (uint64_t)queued * listener->queue_limit > (uint64_t)listener->queued * limit) {
                listener->queued = queued;
                listener->queue_limit = limit;
        }
        listener->count++;
        return MNL_CB_OK;
}

/* The dump filters by local port itself; a UDP socket that is not connected is in state TCP_CLOSE. */
static int dump_listeners(struct sockets *sockets, uint8_t family, struct listener_search *search)
{
        struct nlmsghdr *header;
        struct inet_diag_req_v2 *request = begin_request(sockets, &header, family, search->frontend->protocol);

        header->nlmsg_flags |= NLM_F_DUMP;
        request->idiag_states = search->frontend->protocol == IPPROTO_TCP ? 1 << TCP_LISTEN : 1 << TCP_CLOSE;
        request->id.idiag_sport = htons(search->frontend->port);
        if (mnl_socket_sendto(sockets->netlink, header, header->nlmsg_len) < 0)
                return -errno;
        return receive(sockets, read_listener, search);
}

int sockets_find_listener(struct sockets *sockets, const struct frontend *frontend, struct listener *ret_listener)
{
        struct listener_search search = { .frontend = frontend };
        bool ipv4 = address_is_ipv4(&frontend->address) || address_is_wildcard(&frontend->address);
        int r = 0;

        if (ipv4)
                r = dump_listeners(sockets, AF_INET, &search);
        if (r >= 0) /* IPv4 too can be taken by a socket of the other family */
                r = dump_listeners(sockets, AF_INET6, &search);
        if (r < 0)
                return r;
        if (search.listener.count == 0)
                return -ENOENT;

        *ret_listener = search.listener;
        return 0;
}

static enum connection_state connection_state(const struct socket_report *report)
{
        switch (report->state) {
        case TCP_LISTEN:
        case TCP_CLOSE:
        case TCP_SYN_SENT:
                return CONNECTION_NONE;
        case TCP_SYN_RECV:
                return CONNECTION_HANDSHAKE;
        default:
                return CONNECTION_ESTABLISHED;
        }
}

int sockets_probe_flow(struct sockets *sockets, const struct flow *flow, uint32_t ifindex, enum connection_state *ret_state,
                       struct listener *ret_listener)
{
        struct listener listener = { 0 };
        struct socket_report report = { 0 };
        uint32_t scope = scope_of(&flow->destination);
        bool tcp = flow->protocol == IPPROTO_TCP;
        int r;

        r = look_up(sockets, flow->protocol, &flow->destination, flow->destination_port, &flow->source, flow->source_port,
                    scope ? scope : ifindex, &report);
        if (r < 0 && r != -ENOENT)
                return r;

        if (r >= 0 && report.state == (tcp ? TCP_LISTEN : TCP_CLOSE))
                listener = (struct listener){
                        .count = 1,
                        .queued = tcp ? report.receive_queue : report.memory_used,
                        .queue_limit = tcp ? report.send_queue : report.memory_limit,
                        .cgroup = report.cgroup,
                };
        *ret_state = r < 0 ? CONNECTION_NONE : connection_state(&report);
        *ret_listener = listener;
        return 0;
}

int sockets_find_connection(struct sockets *sockets, const struct flow *flow, enum connection_state *ret_state)
{
        struct listener listener;

        return sockets_probe_flow(sockets, flow, 0, ret_state, &listener);
}

int sockets_find_client(struct sockets *sockets, const struct flow *flow, struct socket_owner *ret_owner)
{
        struct socket_report report = { 0 };
        int r;

        r = look_up(sockets, flow->protocol, &flow->source, flow->source_port, &flow->destination, flow->destination_port,
                    scope_of(&flow->source), &report);
        if (r < 0)
                return r;
        if (flow->protocol == IPPROTO_TCP && report.state == TCP_LISTEN)
                return -ENOENT;

        *ret_owner = (struct socket_owner){ .cgroup = report.cgroup, .inode = report.inode, .uid = report.uid };
        return 0;
}
