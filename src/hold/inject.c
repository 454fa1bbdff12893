/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/inject.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "hold/packet.h"
#include "hold/scope.h"

struct injector {
        struct hold_hooks *hooks; /* not owned */
        int raw4, raw6;
        uint8_t frame[PACKET_ETHERNET_HEADER + PACKET_MAX];
};

static int open_raw(int family, int level, int option)
{
        _cleanup_(close_fdp) int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_RAW);
        int on = 1;

        if (fd < 0 || setsockopt(fd, level, option, &on, sizeof(on)) < 0)
                return -errno;
        return TAKE_FD(fd);
}

int injector_new(struct hold_hooks *hooks, struct injector **ret_injector)
{
        _cleanup_(injector_freep) struct injector *injector = calloc(1, sizeof(*injector));

        if (!injector)
                return -ENOMEM;

        injector->hooks = hooks;
        injector->raw6 = -1;
        injector->raw4 = open_raw(AF_INET, IPPROTO_IP, IP_HDRINCL);
        if (injector->raw4 < 0)
                return injector->raw4;

        injector->raw6 = open_raw(AF_INET6, IPPROTO_IPV6, IPV6_HDRINCL);
        if (injector->raw6 < 0 && injector->raw6 != -EAFNOSUPPORT) /* a kernel without IPv6 has no such packets either */
                return injector->raw6;

        *ret_injector = TAKE_PTR(injector);
        return 0;
}

struct injector *injector_free(struct injector *injector)
{
        if (!injector)
                return NULL;

        close_fd(injector->raw4);
        close_fd(injector->raw6);
        free(injector);
        return NULL;
}

int injector_exempt(struct injector *injector, const struct lull_flow *flow, uint64_t until_ns)
{
        return bpf_map_update_elem(hold_hooks_map(injector->hooks, HOLD_MAP_PASS), flow, &until_ns, BPF_ANY);
}

void injector_hold_again(struct injector *injector, const struct lull_flow *flow)
{
        (void)bpf_map_delete_elem(hold_hooks_map(injector->hooks, HOLD_MAP_PASS), flow);
}

/* The device's own address, which makes the packet one for this host; zero for a device without. */
static int device_mac(int fd, uint32_t ifindex, uint8_t ret_mac[static PACKET_MAC])
{
        struct ifreq request = { .ifr_ifindex = (int)ifindex };

        if (ioctl(fd, SIOCGIFNAME, &request) < 0 || ioctl(fd, SIOCGIFHWADDR, &request) < 0)
                return -errno;

        memset(ret_mac, 0, PACKET_MAC);
        if (request.ifr_hwaddr.sa_family == ARPHRD_ETHER)
                memcpy(ret_mac, request.ifr_hwaddr.sa_data, PACKET_MAC);
        return 0;
}

static int send_through_interface(struct injector *injector, uint32_t ifindex, bool ipv6, size_t length)
{
        uint8_t mac[PACKET_MAC];
        int r;

        r = device_mac(injector->raw4, ifindex, mac);
        if (r < 0)
                return r;

        packet_ethernet_header(ipv6, mac, injector->frame);
        return hold_hooks_inject(injector->hooks, ifindex, injector->frame, PACKET_ETHERNET_HEADER + length);
}

static int send_from_here(struct injector *injector, const struct packet *packet, size_t length)
{
        struct sockaddr_storage destination;
        /* The destination's port must be zero for IPv6 (rawv6_sendmsg() takes it for a protocol) and means nothing for IPv4. */
        socklen_t size = address_to_sockaddr(&packet->flow.destination, 0, &destination);
        ssize_t n;

        if (packet->ipv6)
                ((struct sockaddr_in6 *)&destination)->sin6_scope_id = scope_of(&packet->flow.destination);
        n = sendto(packet->ipv6 ? injector->raw6 : injector->raw4, injector->frame + PACKET_ETHERNET_HEADER, length, 0,
                   (struct sockaddr *)&destination, size);
        return n < 0 ? -errno : 0;
}

int injector_send(struct injector *injector, const struct injection *injection)
{
        uint8_t *ip = injector->frame + PACKET_ETHERNET_HEADER;
        bool partial = injection->flags & LULL_PACKET_CHECKSUM_PARTIAL, checksum;
        struct packet packet;
        size_t n, length;
        int r;

        r = packet_parse(injection->data, injection->length, &packet);
        if (r < 0)
                return r;

        n = packet_datagrams(&packet, injection->gso_size);
        checksum = partial || !packet_lacks_checksum(injection->data, &packet);
        for (size_t i = 0; i < n; i++) {
                length = packet.length;
                if (n > 1) {
                        length = packet_datagram(injection->data, &packet, injection->gso_size, i, checksum, ip);
                } else {
                        memcpy(ip, injection->data, length);
                        if (partial)
                                packet_complete_checksum(ip, &packet);
                }

                r = injection->flags & (LULL_PACKET_LOOPBACK | LULL_PACKET_LOCAL_OUT)
                            ? send_from_here(injector, &packet, length)
                            : send_through_interface(injector, injection->ifindex, packet.ipv6, length);
                if (r < 0)
                        return r;
        }
        return 0;
}
