/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/data_plane.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/log.h"
#include "hold/egress.h"
#include "hold/packet.h"
#include "hold/state.h"

enum { ENDPOINTS_LISTED_MAX = 16 }; /* a list this long may be cut */

/* A probe every 5 ms at first; later ones come when an eighth of the time since the first has gone by again. */
#define INTERVAL_MIN_NS (5 * NSEC_PER_MSEC)
#define INTERVAL_WAITED_FOR_MAX_NS (50 * NSEC_PER_MSEC) /* while flows wait for it */
#define INTERVAL_MAX_NS NSEC_PER_SEC
/* An entry to an endpoint that does not answer for so long is made anew: the data plane may choose another. */
#define SILENCE_MAX_NS (200 * NSEC_PER_MSEC)

void data_plane_init(struct data_plane_probe *probe)
{
        *probe = (struct data_plane_probe){ .port_fd = -1 };
}

/* The SYN-ACK finds no socket that waits for it, and the port cannot become somebody's meanwhile. */
static int reserve_port(struct data_plane_probe *probe)
{
        struct sockaddr_storage name;
        socklen_t size = address_to_sockaddr(&probe->flow.source, 0, &name);
        _cleanup_(close_fdp) int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || bind(fd, (struct sockaddr *)&name, size) < 0 || getsockname(fd, (struct sockaddr *)&name, &size) < 0)
                return -errno;

        probe->flow.source_port = ntohs(name.ss_family == AF_INET ? ((struct sockaddr_in *)&name)->sin_port
                                                                  : ((struct sockaddr_in6 *)&name)->sin6_port);
        probe->port_fd = TAKE_FD(fd);
        return 0;
}

static int prepare(struct translated *translated, const struct frontend *frontend)
{
        struct data_plane_probe *probe = &translated->probe;
        int r;

        probe->flow =
                (struct flow){ .destination = frontend->address, .destination_port = frontend->port, .protocol = IPPROTO_TCP };
        if (address_is_wildcard(&frontend->address)) { /* a port of this node's */
                r = egress_primary(address_is_ipv4(&frontend->address), &probe->flow.destination);
                if (r < 0)
                        return r;
        }
        r = egress_address(&probe->flow.destination, &probe->flow.source);
        if (r < 0)
                return r;
        if (translated->n_source_ranges > 0 &&
            !prefixes_contain(translated->source_ranges, translated->n_source_ranges, &probe->flow.source))
                return -EACCES; /* the data plane would not let it through */
        return reserve_port(probe);
}

void data_plane_begin(struct held_frontend *frontend, uint64_t now_ns)
{
        struct data_plane_probe *probe = &frontend->translated->probe;
        int r;

        if (probe->began_ns != 0 || frontend->frontend.protocol != IPPROTO_TCP)
                return;

        probe->began_ns = now_ns;
        r = prepare(frontend->translated, &frontend->frontend);
        if (r < 0) {
                char text[FRONTEND_TEXT_MAX];

                log_debug("cannot probe for %s: %s", frontend_format(&frontend->frontend, text), strerror(-r));
                probe->unable = true;
        }
}

bool data_plane_proves(const struct held_frontend *frontend, const struct conntrack_entry *entry)
{
        const struct translated *translated = frontend->translated;
        const struct endpoint *endpoint;
        unsigned n = 0;

        if (translated->probe.port_fd < 0 || !flow_equal(&entry->original, &translated->probe.flow) ||
            !conntrack_is_answered(entry))
                return false;

        TAILQ_FOREACH(endpoint, &translated->endpoints, link)
                n++;
        /* A data plane that translates elsewhere than in netfilter leaves the address as it is. */
        return n >= ENDPOINTS_LISTED_MAX ||
               endpoints_find(&translated->endpoints, &entry->reply.source, entry->reply.source_port) ||
               address_equal(&entry->reply.source, &translated->probe.flow.destination);
}

/* The last SYN met a data plane that did not know an endpoint, or left an entry that leads nowhere: nothing of it may stay. */
static bool leads_to_an_endpoint(struct held_frontend *frontend, const struct conntrack_entry *entry, uint64_t now_ns)
{
        struct data_plane_probe *probe = &frontend->translated->probe;

        if (!endpoints_find(&frontend->translated->endpoints, &entry->reply.source, entry->reply.source_port))
                return false;

        if (probe->first_ns == 0)
                probe->first_ns = now_ns;
        return now_ns < probe->first_ns + SILENCE_MAX_NS;
}

/* No exemption is needed: the hooks know it. */
static int send_syn(struct held_frontend *frontend)
{
        const struct data_plane_probe *probe = &frontend->translated->probe;
        uint8_t packet[PACKET_SYN_MAX];

        return injector_send(frontend->holding->hold->injector,
                             &(struct injection){ .flags = LULL_PACKET_LOCAL_OUT,
                                                  .data = packet,
                                                  .length = packet_syn(&probe->flow, LULL_PROBE_SEQUENCE, packet) });
}

static uint64_t interval_ns(const struct held_frontend *frontend, uint64_t now_ns)
{
        bool waited_for = frontend->translated->way != WAY_DIRECT && frontend->queue.n_waiting > 0;
        uint64_t interval = MAX((now_ns - frontend->translated->probe.began_ns) / 8, INTERVAL_MIN_NS);

        return MIN(interval, waited_for ? INTERVAL_WAITED_FOR_MAX_NS : INTERVAL_MAX_NS);
}

bool data_plane_run(struct held_frontend *frontend, uint64_t now_ns)
{
        struct data_plane_probe *probe = &frontend->translated->probe;
        struct conntrack *conntrack = frontend->holding->hold->translation->conntrack;
        struct conntrack_entry entry;
        int r;

        if (probe->port_fd < 0 || now_ns < probe->next_ns)
                return false;

        r = conntrack_find(conntrack, &probe->flow, &entry);
        if (r >= 0 && data_plane_proves(frontend, &entry))
                return true;
        if (r >= 0 && !leads_to_an_endpoint(frontend, &entry, now_ns)) {
                (void)conntrack_delete(conntrack, &probe->flow);
                probe->first_ns = 0;
        }

        r = send_syn(frontend);
        if (r < 0 && r != -EPERM) /* which is what a rule that drops it says */
                log_debug("cannot send a probe: %s", strerror(-r));
        probe->next_ns = now_ns + interval_ns(frontend, now_ns);
        return false;
}

void data_plane_end(struct held_frontend *frontend)
{
        struct data_plane_probe *probe = &frontend->translated->probe;

        if (probe->port_fd >= 0) {
                (void)conntrack_delete(frontend->holding->hold->translation->conntrack, &probe->flow);
                close_fd(probe->port_fd);
        }
        data_plane_init(probe);
}
