/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/hold_hooks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_ether.h>
#include <linux/netfilter.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/time.h"
#include "bpf/describe.h"
#include "bpf/hold.skel.h"
#include "bpf/inject.skel.h"
#include "bpf/netfilter.h"
#include "bpf/pins.h"

enum {
        /* After reassembly (-400) and before conntrack (-200): a held packet leaves no trace there. */
        PRIORITY = -250,
        PRIORITY_OTHER = -249, /* the kernel wants BPF programs on one hook to differ */
        FRAME_MAX = ETH_HLEN + LULL_PACKET_LARGE,
        DEMAND_WINDOW_SLOTS = 512, /* mapped at once; whole pages, also of 64 KiB */
        DEMAND_WINDOW = DEMAND_WINDOW_SLOTS * sizeof(struct lull_demand),
        DEMAND_WINDOWS = LULL_FRONTENDS_MAX / DEMAND_WINDOW_SLOTS,
};
static_assert(LULL_FRONTENDS_MAX % DEMAND_WINDOW_SLOTS == 0 && DEMAND_WINDOW % 65536 == 0, "windows of whole pages");

/* While old hooks give way to new ones nothing is published: what still went to the old ring buffer would be lost. */
#define TAKEOVER_NS NSEC_PER_SEC

static const struct {
        const char *name;
        bool adopted;
} hold_maps[HOLD_MAP_MAX] = {
        [HOLD_MAP_FRONTENDS] = { "frontends", true }, [HOLD_MAP_DEMAND] = { "demand", true },
        [HOLD_MAP_PASS] = { "pass", true },           [HOLD_MAP_ANSWERS] = { "answers", false },
        [HOLD_MAP_IGNORED] = { "ignored", true },     [HOLD_MAP_ALLOWED] = { "allowed", true },
        [HOLD_MAP_LOCAL] = { "local", true },         [HOLD_MAP_COUNTERS] = { "counters", true },
        [HOLD_MAP_EVENTS] = { "events", false },      [HOLD_MAP_CONTROL] = { "control", true },
};

static const struct attachment {
        uint32_t family;
        uint32_t number;
        bool translated; /* only where frontends are */
        const char *pin;
} attachments[] = {
        { NFPROTO_IPV4, NF_INET_PRE_ROUTING, false, "hold_ipv4" },
        { NFPROTO_IPV6, NF_INET_PRE_ROUTING, false, "hold_ipv6" },
        { NFPROTO_IPV4, NF_INET_LOCAL_OUT, true, "hold_out_ipv4" },
        { NFPROTO_IPV6, NF_INET_LOCAL_OUT, true, "hold_out_ipv6" },
};

struct hold_hooks {
        char *directory;
        struct hold_bpf *hold;
        struct inject_bpf *inject;
        struct lull_control *control;
        struct lull_demand *demand[DEMAND_WINDOWS]; /* NULL until one of its slots is asked for: what is mapped is resident */
        struct lull_demand nowhere;                 /* stands in for what cannot be mapped: its quota fills, and its packets pass */
        int links[ELEMENTSOF(attachments)];
        bool translated;
        bool adopted;
};

static struct bpf_map *find_map(const struct hold_hooks *hooks, enum hold_map map)
{
        return bpf_object__find_map_by_name(hooks->hold->obj, hold_maps[map].name);
}

int hold_hooks_map(const struct hold_hooks *hooks, enum hold_map map)
{
        return bpf_map__fd(find_map(hooks, map));
}

/* Runs the program that lets @frame in; @ret_result is the program's own. */
static int run_inject(struct hold_hooks *hooks, uint32_t ifindex, const void *frame, size_t length, int *ret_result)
{
        struct __sk_buff context = { .cb = { ifindex } };
        LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = length, .ctx_in = &context,
                    .ctx_size_in = sizeof(context), .repeat = 1);

        if (bpf_prog_test_run_opts(bpf_program__fd(hooks->inject->progs.inject_frame), &options) < 0)
                return -errno;

        *ret_result = options.retval;
        return 0;
}

/* How much room around it the kernel wants in the page that a frame is copied to differs: ask. Interface 0 takes nothing in. */
static size_t measure_frame_max(struct hold_hooks *hooks)
{
        _cleanup_(freep) uint8_t *frame = calloc(1, FRAME_MAX);
        size_t accepted = ETH_ZLEN, refused = FRAME_MAX + 1;
        int result;

        if (!frame)
                return accepted;

        while (refused - accepted > 1) {
                size_t length = accepted + (refused - accepted) / 2;

                if (run_inject(hooks, 0, frame, length, &result) == 0)
                        accepted = length;
                else
                        refused = length;
        }
        return accepted;
}

static int load_inject(struct hold_hooks *hooks)
{
        hooks->inject = inject_bpf__open_and_load();
        return hooks->inject ? 0 : -errno;
}

static bool same_shape(int fd, const struct bpf_map *map)
{
        struct bpf_map_info info = {};
        __u32 length = sizeof(info);

        return bpf_obj_get_info_by_fd(fd, &info, &length) == 0 && info.type == bpf_map__type(map) &&
               info.key_size == bpf_map__key_size(map) && info.value_size == bpf_map__value_size(map) &&
               info.max_entries == bpf_map__max_entries(map) && info.map_flags == bpf_map__map_flags(map);
}

static bool same_layout(int control_fd)
{
        struct lull_control state;
        __u32 zero = 0;

        return bpf_map_lookup_elem(control_fd, &zero, &state) == 0 && state.layout == LULL_WIRE_LAYOUT;
}

static void close_all(int (*fds)[HOLD_MAP_MAX])
{
        for (size_t i = 0; i < HOLD_MAP_MAX; i++)
                close_fd((*fds)[i]);
}

/* Lets the object use the maps that an earlier daemon left: all of them or none. Returns whether it did, or -errno. */
static int adopt_maps(struct hold_hooks *hooks)
{
        _cleanup_(close_all) int fds[HOLD_MAP_MAX];
        int r;

        for (size_t i = 0; i < HOLD_MAP_MAX; i++)
                fds[i] = hold_maps[i].adopted ? pin_open(hooks->directory, hold_maps[i].name) : -1;
        if (fds[HOLD_MAP_CONTROL] < 0)
                return false;

        for (size_t i = 0; i < HOLD_MAP_MAX; i++)
                if (hold_maps[i].adopted && (fds[i] < 0 || !same_shape(fds[i], find_map(hooks, i))))
                        return false;
        if (!same_layout(fds[HOLD_MAP_CONTROL]))
                return false;

        for (size_t i = 0; i < HOLD_MAP_MAX; i++) {
                if (!hold_maps[i].adopted)
                        continue;
                r = bpf_map__reuse_fd(find_map(hooks, i), fds[i]);
                if (r < 0)
                        return r;
        }
        return true;
}

static void set_type(struct bpf_program *program)
{
        bpf_program__set_type(program, (enum bpf_prog_type)NETFILTER_PROGRAM);
        bpf_program__set_expected_attach_type(program, (enum bpf_attach_type)NETFILTER_ATTACH);
}

static int load_hold(struct hold_hooks *hooks)
{
        int r;

        hooks->hold = hold_bpf__open();
        if (!hooks->hold)
                return -errno;

        hooks->hold->rodata->reinject_max = measure_frame_max(hooks) - ETH_HLEN;
        hooks->hold->rodata->translated = hooks->translated;
        set_type(hooks->hold->progs.hold_prerouting);
        set_type(hooks->hold->progs.hold_local_out);
        bpf_program__set_autoload(hooks->hold->progs.hold_local_out, hooks->translated);
        if (!hooks->translated)
                bpf_map__set_max_entries(hooks->hold->maps.answers, 1); /* unused, and preallocated */

        r = adopt_maps(hooks);
        if (r < 0)
                return r;
        hooks->adopted = r;
        return hold_bpf__load(hooks->hold);
}

static int map_memory(const struct hold_hooks *hooks, enum hold_map map, size_t offset, size_t size, void **ret_memory)
{
        void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, hold_hooks_map(hooks, map), (off_t)offset);

        if (memory == MAP_FAILED)
                return -errno;
        *ret_memory = memory;
        return 0;
}

static int map_demand(struct hold_hooks *hooks, size_t window)
{
        if (hooks->demand[window])
                return 0;
        return map_memory(hooks, HOLD_MAP_DEMAND, window * DEMAND_WINDOW, DEMAND_WINDOW, (void **)&hooks->demand[window]);
}

static void unmap_demand(struct hold_hooks *hooks, size_t window)
{
        if (hooks->demand[window])
                munmap(hooks->demand[window], DEMAND_WINDOW);
        hooks->demand[window] = NULL;
}

static int pin_map(struct hold_hooks *hooks, enum hold_map map)
{
        return pin_replace(hooks->directory, hold_maps[map].name, hold_hooks_map(hooks, map));
}

/* The control map comes last: its layout vouches for the others. */
static int pin_maps(struct hold_hooks *hooks)
{
        int r;

        for (size_t i = 0; i < HOLD_MAP_MAX; i++) {
                if (!hold_maps[i].adopted || i == HOLD_MAP_CONTROL)
                        continue;
                r = pin_map(hooks, i);
                if (r < 0)
                        return r;
        }
        return pin_map(hooks, HOLD_MAP_CONTROL);
}

static void settle_quota(struct lull_demand *entry)
{
        uint64_t published = __atomic_load_n(&entry->published, __ATOMIC_ACQUIRE);

        if (entry->consumed != published)
                __atomic_store_n(&entry->consumed, published, __ATOMIC_RELEASE);
}

/* What an earlier daemon had taken from its ring buffer went with it. */
static int settle_quotas(struct hold_hooks *hooks)
{
        for (size_t window = 0; window < DEMAND_WINDOWS; window++) {
                bool mapped = hooks->demand[window];
                int r = map_demand(hooks, window);

                if (r < 0)
                        return r;
                for (size_t i = 0; i < DEMAND_WINDOW_SLOTS; i++)
                        settle_quota(&hooks->demand[window][i]);
                if (!mapped)
                        unmap_demand(hooks, window);
        }
        return 0;
}

static int prepare_maps(struct hold_hooks *hooks)
{
        int r;

        r = map_memory(hooks, HOLD_MAP_CONTROL, 0, sizeof(*hooks->control), (void **)&hooks->control);
        if (r < 0)
                return r;
        if (hooks->adopted)
                return settle_quotas(hooks);
        hooks->control->layout = LULL_WIRE_LAYOUT;
        return pin_maps(hooks);
}

/* Pins are left as they are. */
static struct hold_hooks *release(struct hold_hooks *hooks)
{
        if (!hooks)
                return NULL;

        for (size_t i = 0; i < ELEMENTSOF(attachments); i++)
                close_fd(hooks->links[i]);
        for (size_t i = 0; i < DEMAND_WINDOWS; i++)
                unmap_demand(hooks, i);
        if (hooks->control)
                munmap(hooks->control, sizeof(*hooks->control));
        hold_bpf__destroy(hooks->hold);
        inject_bpf__destroy(hooks->inject);
        free(hooks->directory);
        free(hooks);
        return NULL;
}
DEFINE_CLEANUP(struct hold_hooks, release)

int hold_hooks_new(const char *bpffs, bool translated, struct hold_hooks **ret_hooks)
{
        _cleanup_(releasep) struct hold_hooks *hooks = calloc(1, sizeof(*hooks));
        int r;

        if (!hooks)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTSOF(attachments); i++)
                hooks->links[i] = -1;
        hooks->translated = translated;
        hooks->directory = strdup(bpffs);
        if (!hooks->directory)
                return -ENOMEM;
        libbpf_log_to_debug();

        r = pins_prepare(bpffs);
        if (r == -ENOTSUP)
                log_error("%s: not on a BPF filesystem; mount one there (mount -t bpf bpf DIRECTORY)", bpffs);
        else if (r < 0)
                log_error("%s: cannot make the directory for pins: %s", bpffs, strerror(-r));
        if (r < 0)
                return r;

        r = load_inject(hooks);
        if (r < 0) {
                log_error("cannot load the program that lets packets in again: %s", strerror(-r));
                return r;
        }
        r = load_hold(hooks);
        if (r < 0) {
                log_error("cannot load the program that holds packets: %s; \"lull feature probe\" tells what the kernel lacks",
                          strerror(-r));
                return r;
        }
        r = prepare_maps(hooks);
        if (r < 0) {
                log_error("%s: cannot pin the maps: %s", bpffs, strerror(-r));
                return r;
        }

        *ret_hooks = TAKE_PTR(hooks);
        return 0;
}

struct hold_hooks *hold_hooks_free(struct hold_hooks *hooks, bool keep_pins)
{
        if (hooks && !keep_pins) {
                hold_hooks_detach(hooks);
                for (size_t i = 0; i < HOLD_MAP_MAX; i++)
                        pin_remove(hooks->directory, hold_maps[i].name);
        }
        return release(hooks);
}

/* Two daemons may overlap for a moment, each with a priority of its own. Kernels that reassemble no fragments for us pass them. */
static int attach(struct hold_hooks *hooks, const struct attachment *attachment)
{
        static const struct {
                int32_t priority;
                uint32_t flags;
        } ways[] = {
                { PRIORITY, NETFILTER_DEFRAG },
                { PRIORITY_OTHER, NETFILTER_DEFRAG },
                { PRIORITY, 0 },
                { PRIORITY_OTHER, 0 },
        };
        bool leaving = attachment->number == NF_INET_LOCAL_OUT;
        const struct bpf_program *program = leaving ? hooks->hold->progs.hold_local_out : hooks->hold->progs.hold_prerouting;
        int fd = -EBUSY;

        for (size_t i = 0; fd < 0 && i < ELEMENTSOF(ways); i++) {
                struct netfilter_hook hook = {
                        .family = attachment->family,
                        .number = attachment->number,
                        .priority = ways[i].priority,
                        .flags = ways[i].flags,
                };

                if (!leaving || ways[i].flags == 0) /* what leaves is not yet fragmented */
                        fd = netfilter_link_create(bpf_program__fd(program), &hook);
        }
        return fd;
}

/* Puts the new links' pins in the place of the old ones'. An old link is gone at once only when told so. */
static int replace_links(struct hold_hooks *hooks)
{
        for (size_t i = 0; i < ELEMENTSOF(attachments); i++) {
                _cleanup_(close_fdp) int old = pin_open(hooks->directory, attachments[i].pin);
                int r;

                if (hooks->links[i] < 0)
                        continue;
                r = pin_replace(hooks->directory, attachments[i].pin, hooks->links[i]);
                if (r < 0)
                        return r;
                if (old >= 0)
                        bpf_link_detach(old);
        }
        return 0;
}

static bool has_pinned_links(const struct hold_hooks *hooks)
{
        for (size_t i = 0; i < ELEMENTSOF(attachments); i++) {
                _cleanup_(close_fdp) int fd = pin_open(hooks->directory, attachments[i].pin);

                if (fd >= 0)
                        return true;
        }
        return false;
}

static int attach_links(struct hold_hooks *hooks)
{
        for (size_t i = 0; i < ELEMENTSOF(attachments); i++) {
                if (attachments[i].translated && !hooks->translated)
                        continue;
                hooks->links[i] = attach(hooks, &attachments[i]);
                if (hooks->links[i] < 0)
                        return hooks->links[i];
        }
        return replace_links(hooks);
}

static int take_over_links(struct hold_hooks *hooks)
{
        uint64_t hold_until_ns = hooks->control->hold_until_ns;
        int r;

        hooks->control->hold_until_ns = MAX(hold_until_ns, now_monotonic_ns() + TAKEOVER_NS);
        r = attach_links(hooks);
        if (r >= 0)
                r = settle_quotas(hooks);
        hooks->control->hold_until_ns = hold_until_ns;
        return r;
}

/* On failure nothing stays attached: hooks that nobody listens to would only drop packets. */
int hold_hooks_attach(struct hold_hooks *hooks)
{
        int r;

        if (hold_hooks_attached(hooks))
                return 0;

        r = has_pinned_links(hooks) ? take_over_links(hooks) : attach_links(hooks);
        if (r < 0)
                hold_hooks_detach(hooks);
        return r;
}

void hold_hooks_detach(struct hold_hooks *hooks)
{
        for (size_t i = 0; i < ELEMENTSOF(attachments); i++) {
                _cleanup_(close_fdp) int pinned = pin_open(hooks->directory, attachments[i].pin);

                if (pinned >= 0)
                        bpf_link_detach(pinned);
                pin_remove(hooks->directory, attachments[i].pin);
                if (hooks->links[i] >= 0)
                        bpf_link_detach(hooks->links[i]);
                hooks->links[i] = close_fd(hooks->links[i]);
        }
}

bool hold_hooks_attached(const struct hold_hooks *hooks)
{
        for (size_t i = 0; i < ELEMENTSOF(attachments); i++)
                if (hooks->links[i] < 0 && (hooks->translated || !attachments[i].translated))
                        return false;
        return true;
}

bool hold_hooks_adopted(const struct hold_hooks *hooks)
{
        return hooks->adopted;
}

struct lull_control *hold_hooks_control(const struct hold_hooks *hooks)
{
        return hooks->control;
}

struct lull_demand *hold_hooks_demand(struct hold_hooks *hooks, uint32_t slot)
{
        if (map_demand(hooks, slot / DEMAND_WINDOW_SLOTS) < 0)
                return &hooks->nowhere;
        return &hooks->demand[slot / DEMAND_WINDOW_SLOTS][slot % DEMAND_WINDOW_SLOTS];
}

uint64_t hold_hooks_counter(const struct hold_hooks *hooks, enum lull_counter counter)
{
        int n_cpus = libbpf_num_possible_cpus();
        _cleanup_(freep) uint64_t *values = n_cpus > 0 ? calloc(n_cpus, sizeof(*values)) : NULL;
        __u32 key = counter;
        uint64_t sum = 0;

        if (!values || bpf_map_lookup_elem(hold_hooks_map(hooks, HOLD_MAP_COUNTERS), &key, values) < 0)
                return 0;

        for (int i = 0; i < n_cpus; i++)
                sum += values[i];
        return sum;
}

int hold_hooks_inject(struct hold_hooks *hooks, uint32_t ifindex, const void *frame, size_t length)
{
        int r, result = 0;

        if (length > ETH_HLEN && length - ETH_HLEN > hooks->hold->rodata->reinject_max)
                return -EMSGSIZE;

        r = run_inject(hooks, ifindex, frame, length, &result);
        if (r < 0)
                return r;
        /* The program's result is a -errno, or the network stack's word that it dropped the packet (NET_RX_DROP). */
        return result > 0 ? -EIO : result;
}

json_t *hold_hooks_programs(const struct hold_hooks *hooks)
{
        json_t *programs = json_array();

        json_array_append_new(programs, program_describe(bpf_program__fd(hooks->hold->progs.hold_prerouting), "netfilter",
                                                         "prerouting, IPv4 and IPv6", hold_hooks_attached(hooks)));
        if (hooks->translated)
                json_array_append_new(programs, program_describe(bpf_program__fd(hooks->hold->progs.hold_local_out), "netfilter",
                                                                 "local out, IPv4 and IPv6", hold_hooks_attached(hooks)));
        json_array_append_new(programs,
                              program_describe(bpf_program__fd(hooks->inject->progs.inject_frame), "sched_cls", "test run", false));
        return programs;
}

json_t *hold_hooks_maps(const struct hold_hooks *hooks)
{
        json_t *maps = json_array();

        for (size_t i = 0; i < HOLD_MAP_MAX; i++)
                json_array_append_new(maps, map_describe(hold_hooks_map(hooks, i)));
        return maps;
}
