/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/features.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <limits.h>
#include <linux/netfilter.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/macros.h"
#include "bpf/describe.h"
#include "bpf/drm_sched.h"
#include "bpf/netfilter.h"

/* One instruction of a probe's program. */
#define INSTRUCTION(c, d, s, o, i) ((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define RETURN(value) INSTRUCTION(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, (value)), INSTRUCTION(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

static const struct bpf_insn return_one[] = { RETURN(1) };

/* What a refused attempt says: lacking it, or not allowed to find out. */
static int judge_error(int error)
{
        return error == EPERM || error == EACCES || error == ENOMEM ? -error : 0;
}

static int judge_fd(int fd)
{
        if (fd < 0)
                return judge_error(errno);
        close_fd(fd);
        return 1;
}

static int load(uint32_t type, uint32_t attach, uint32_t attach_btf_id, const struct bpf_insn *program, size_t length)
{
        LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = attach, .attach_btf_id = attach_btf_id);

        return bpf_prog_load((enum bpf_prog_type)type, "lull_probe", "GPL", program, length, &options);
}

static int probe_load(uint32_t type, uint32_t attach)
{
        return judge_fd(load(type, attach, 0, return_one, ELEMENTSOF(return_one)));
}

static int probe_btf(void)
{
        return access("/sys/kernel/btf/vmlinux", R_OK) == 0 ? 1 : judge_error(errno);
}

/* The id of a kernel function in its BTF, 0 when it has none of that name, or -errno. */
static int find_kernel_function(const char *name)
{
        struct btf *btf = btf__load_vmlinux_btf();
        int r;

        if (!btf)
                return judge_error(errno);

        r = btf__find_by_name_kind(btf, name, BTF_KIND_FUNC);
        btf__free(btf);
        return MAX(r, 0);
}

static int probe_ring_buffer(void)
{
        return judge_fd(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "lull_probe", 0, 0, sysconf(_SC_PAGESIZE), NULL));
}

/* Asks for a link that cannot be: the error tells how far the kernel understood. Returns 1 for @understood, 0, or -errno. */
static int probe_netfilter_link(const struct netfilter_hook *hook, int understood)
{
        _cleanup_(close_fdp) int program = load(NETFILTER_PROGRAM, NETFILTER_ATTACH, 0, return_one, ELEMENTSOF(return_one));
        int r;

        if (program < 0)
                return judge_error(errno);

        r = netfilter_link_create(program, hook);
        if (r >= 0)
                close_fd(r);
        return r == understood ? 1 : judge_error(-r);
}

static int probe_netfilter(void)
{
        return probe_netfilter_link(&(struct netfilter_hook){ .family = NFPROTO_UNSPEC }, -EAFNOSUPPORT);
}

/* The kernel looks at the flags before the priority, and never takes the first one. */
static int probe_netfilter_defrag(void)
{
        return probe_netfilter_link(
                &(struct netfilter_hook){
                        .family = NFPROTO_IPV4, .number = NF_INET_PRE_ROUTING, .priority = INT_MIN, .flags = NETFILTER_DEFRAG },
                -ERANGE);
}

/* Makes a dynptr from the context's second member, the skb. */
static int probe_dynptr_skb(void)
{
        int from_skb = find_kernel_function("bpf_dynptr_from_skb"), slice = find_kernel_function("bpf_dynptr_slice");
        const struct bpf_insn program[] = {
                INSTRUCTION(BPF_LDX | BPF_MEM | BPF_DW, 1, 1, sizeof(void *), 0),
                INSTRUCTION(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 0),
                INSTRUCTION(BPF_ALU64 | BPF_MOV | BPF_X, 3, 10, 0, 0),
                INSTRUCTION(BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, -16),
                INSTRUCTION(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, from_skb),
                RETURN(1),
        };

        if (from_skb <= 0 || slice <= 0)
                return MIN(from_skb, slice);
        return judge_fd(load(NETFILTER_PROGRAM, NETFILTER_ATTACH, 0, program, ELEMENTSOF(program)));
}

static int probe_test_run(void)
{
        _cleanup_(close_fdp) int program = load(BPF_PROG_TYPE_SCHED_CLS, 0, 0, return_one, ELEMENTSOF(return_one));
        const uint8_t frame[64] = {};
        struct __sk_buff context = { .cb = { 1 } };
        LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = sizeof(frame), .ctx_in = &context,
                    .ctx_size_in = sizeof(context), .repeat = 1);

        if (program < 0 || bpf_prog_test_run_opts(program, &options) < 0)
                return judge_error(errno);
        return 1;
}

static int probe_cgroup_skb(void)
{
        return probe_load(BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_INGRESS);
}

static int probe_sock_ops(void)
{
        return probe_load(BPF_PROG_TYPE_SOCK_OPS, BPF_CGROUP_SOCK_OPS);
}

/* libbpf brings the BTF that this map insists on, but does not tell a refusal from a lack: ask for something simpler first. */
static int probe_socket_storage(void)
{
        int r = judge_fd(bpf_map_create(BPF_MAP_TYPE_ARRAY, "lull_probe", 4, 4, 1, NULL));

        return r < 0 ? r : libbpf_probe_bpf_map_type(BPF_MAP_TYPE_SK_STORAGE, NULL);
}

/* A cgroup fd that is none: a kernel that knows the flag looks it up and says so. */
static int probe_clone_into_cgroup(void)
{
        struct clone_args arguments = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = INT_MAX };
        long child = syscall(SYS_clone3, &arguments, sizeof(arguments));

        if (child == 0)
                _exit(0);
        if (child > 0) { /* the flag went unseen */
                waitpid(child, NULL, 0);
                return 0;
        }
        return errno == EBADF ? 1 : judge_error(errno);
}

static int probe_cgroup_device(void)
{
        return probe_load(BPF_PROG_TYPE_CGROUP_DEVICE, BPF_CGROUP_DEVICE);
}

static int probe_drm_sched(void)
{
        _cleanup_(close_fdp) int program = load(BPF_PROG_TYPE_RAW_TRACEPOINT, 0, 0, return_one, ELEMENTSOF(return_one));
        const char *tracepoint;
        int r;

        if (program < 0)
                return judge_error(errno);
        r = drm_sched_attach(program, drm_sched_tracepoints, &tracepoint);
        if (r < 0)
                return judge_error(-r);
        close_fd(r);
        return 1;
}

static const struct {
        const char *name;
        int (*probe)(void);
        const char *used_for;
} features[] = {
        [FEATURE_BTF] = { "btf", probe_btf, "everything: the programs fit themselves to the kernel" },
        [FEATURE_RING_BUFFER] = { "ring-buffer", probe_ring_buffer, "handing held packets to the daemon" },
        [FEATURE_NETFILTER_LINK] = { "netfilter-link", probe_netfilter, "holding packets" },
        [FEATURE_NETFILTER_DEFRAG] = { "netfilter-defrag", probe_netfilter_defrag, "holding fragmented datagrams whole" },
        [FEATURE_DYNPTR_SKB] = { "dynptr-skb", probe_dynptr_skb, "reading packets" },
        [FEATURE_TEST_RUN_REDIRECT] = { "test-run-redirect", probe_test_run, "releasing packets that came in on an interface" },
        [FEATURE_CGROUP_SKB] = { "cgroup-skb", probe_cgroup_skb, "activity: requests and answers" },
        [FEATURE_SOCK_OPS] = { "sock-ops", probe_sock_ops, "activity: connections" },
        [FEATURE_SOCKET_STORAGE] = { "socket-storage", probe_socket_storage, "activity: datagrams" },
        [FEATURE_CLONE_INTO_CGROUP] = { "clone-into-cgroup", probe_clone_into_cgroup, "starting processes in their cgroup" },
        [FEATURE_CGROUP_DEVICE] = { "cgroup-device", probe_cgroup_device, "GPUs: seeing opens of devices as they happen" },
        [FEATURE_DRM_SCHED] = { "drm-sched", probe_drm_sched, "GPUs: jobs of DRM drivers, once one is loaded" },
};
static_assert(ELEMENTSOF(features) == FEATURE_MAX, "every feature has a row");

int feature_probe(enum feature feature)
{
        libbpf_log_to_debug();
        return features[feature].probe();
}

const char *feature_to_string(enum feature feature)
{
        return features[feature].name;
}

json_t *features_json(void)
{
        json_t *list = json_array();

        for (size_t i = 0; i < FEATURE_MAX; i++) {
                int r = feature_probe(i);
                const char *detail = r > 0 ? "available" : r == 0 ? "this kernel lacks it" : strerror(-r);

                json_array_append_new(list, json_pack("{s:s, s:b, s:s, s:s}", "name", features[i].name, "available", r > 0,
                                                      "detail", detail, "used_for", features[i].used_for));
        }
        return list;
}
