/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <systemd/sd-daemon.h>

#include "activity/activity.h"
#include "activity/kubelet.h"
#include "agent/agent_policy.h"
#include "agent/agent_private.h"
#include "agent/claims.h"
#include "agent/lease.h"
#include "agent/report.h"
#include "base/cgroup.h"
#include "base/log.h"
#include "base/time.h"
#include "gpu/watch.h"
#include "kube/reflector.h"
#include "serve/daemon.h"
#include "serve/event_log.h"

static void on_demand(struct holding *holding, const struct hold_demand *demand, void *userdata)
{
        agent_policy_on_demand(holding_userdata(holding), demand);
}

static void on_released(struct holding *holding, const struct flow *flow, uint64_t at_ns, void *userdata)
{
        agent_policy_on_released(holding_userdata(holding), at_ns);
}

static void on_answered(struct holding *holding, const struct flow *flow, uint64_t at_ns, void *userdata)
{
        agent_policy_on_answered(holding_userdata(holding), at_ns);
}

static void on_drained(struct holding *holding, void *userdata)
{
        agent_policy_on_drained(holding_userdata(holding));
}

static void on_bound(struct workload *workload, uint16_t port, uint8_t protocol, void *userdata)
{
        /* Readiness is the pod's own word here. */
}

static int parse_cluster(struct agent *agent)
{
        _cleanup_(freep) char *list = NULL;
        char *rest, *word;

        if (!agent->options->cluster_cidr)
                return 0;
        list = strdup(agent->options->cluster_cidr);
        if (!list)
                return -ENOMEM;
        for (word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
                if (agent->translation.n_cluster == CLUSTER_PREFIXES_MAX ||
                    prefix_parse(word, &agent->cluster[agent->translation.n_cluster]) < 0) {
                        log_error(
                                "--cluster-cidr: \"%s\" is not a list of at most %d ranges; write it like 10.244.0.0/16,fd00::/56",
                                agent->options->cluster_cidr, CLUSTER_PREFIXES_MAX);
                        return -EINVAL;
                }
                agent->translation.n_cluster++;
        }
        return 0;
}

static int make_hold(struct agent *agent)
{
        static const struct hold_callbacks callbacks = {
                .demand = on_demand,
                .released = on_released,
                .answered = on_answered,
                .drained = on_drained,
        };
        struct hold_config config = { .event = agent->node.event,
                                      .bpffs = agent->options->bpffs,
                                      .translation = &agent->translation };
        int r;

        agent->translation.wait = strcmp(agent->options->release, "wait") == 0;
        agent->translation.masquerade_all = agent->options->masquerade_all;
        agent->translation.cluster = agent->cluster;
        r = parse_cluster(agent);
        return r < 0 ? r : hold_new(&config, &callbacks, agent, &agent->node.hold);
}

/* Without it the kubelet's probes count as clients' requests. */
static int watch_kubelet(struct agent *agent)
{
        _cleanup_(freep) char *root = NULL, *found = NULL;
        const char *cgroup = agent->options->kubelet;
        int r = 0;

        if (!cgroup) {
                r = cgroup_find_root(&root);
                if (r >= 0)
                        r = kubelet_cgroup_find("/proc", root, &found);
                cgroup = found;
        }
        if (r >= 0)
                r = activity_watch_prober(agent->node.activity, cgroup);
        return r;
}

static void tell_kubelet_failure(int r)
{
        switch (r) {
        case -ENOENT:
                log_warning(
                        "no process called \"kubelet\" is seen on this node, so its probes keep workloads awake: give the agent the "
                        "host's processes (hostPID), or name the kubelet's cgroup by --kubelet-cgroup");
                break;
        case -EBUSY:
                log_warning(
                        "the kubelet shares its cgroup with others, so its probes cannot be told from clients and keep workloads "
                        "awake: give the kubelet a cgroup of its own");
                break;
        default:
                log_warning("the kubelet cannot be watched, so its probes keep workloads awake: %s", strerror(-r));
        }
}

static int watch_gpus(struct agent *agent)
{
        struct gpu_watch_config config = { .event = agent->node.event,
                                           .cgroup_root = agent->options->cgroup,
                                           .rules = agent->options->gpu_rules };

        agent->node.gpu_since_ns = now_monotonic_ns();
        return agent->options->gpu ? gpu_watch_new(&config, &agent->node.gpu) : 0;
}

static int make_parts(struct agent *agent)
{
        static const struct activity_callbacks activity_callbacks = { .bound = on_bound };
        struct node *node = &agent->node;
        int r;

        r = event_log_new(&node->events);
        if (r < 0)
                return r;
        r = activity_new(node->event, agent->options->bpffs, &activity_callbacks, &node->activity);
        if (r < 0)
                return r;
        r = watch_kubelet(agent);
        if (r < 0)
                tell_kubelet_failure(r);
        r = watch_gpus(agent);
        if (r < 0)
                return r;
        r = prober_new(node->event, &node->prober);
        if (r < 0) {
                log_error("cannot prepare readiness probes: %s", strerror(-r));
                return r;
        }
        /* Last: from its first heartbeat on, the event loop has to run within 3 s, lest what an earlier agent holds be let go. */
        return make_hold(agent);
}

static int make_client(struct agent *agent)
{
        _cleanup_(kube_config_freep) struct kube_config *config = NULL;
        char error[KUBE_CONFIG_ERROR_MAX];
        int r = kube_config_load(agent->options->kubeconfig, &config, error);

        if (r < 0) {
                log_error("%s", error);
                return r;
        }
        r = kube_client_new(agent->node.event, config, &agent->client);
        if (r < 0)
                log_error("cannot make a client of %s: %s", config->server, strerror(-r));
        return r;
}

static const char *report_stands_in_the_way(void *userdata)
{
        return report_problem(userdata);
}

static int make_lease(struct agent *agent)
{
        char host[256] = "agent", holder[256], name[320];
        const char *pod = getenv("POD_NAME");
        struct lease_settings settings = { .namespace = agent->options->namespace,
                                           .name = name,
                                           .holder = agent->node.instance,
                                           .problem = report_stands_in_the_way,
                                           .userdata = agent->node.report };
        uint64_t process; /* a pod's container may start anew */

        if (getrandom(&process, sizeof(process), 0) != sizeof(process))
                return -errno;
        gethostname(host, sizeof(host) - 1);
        if (pod && *pod)
                snprintf(holder, sizeof(holder), "%.253s", pod);
        else
                snprintf(holder, sizeof(holder), "%.200s-%d", host, (int)getpid());
        snprintf(agent->node.instance, sizeof(agent->node.instance), "%s_%016" PRIx64, holder, process);
        snprintf(name, sizeof(name), AGENT_LEASE_PREFIX "%.253s", agent->options->node);
        return lease_new(agent->client, &settings, &agent->lease);
}

static int talk_to_api(struct agent *agent)
{
        struct node *node = &agent->node;
        int r = make_client(agent);

        if (r < 0)
                return r;
        r = report_new(agent->client, node->name, &node_report_callbacks, node, &node->report);
        if (r >= 0)
                r = make_lease(agent);
        if (r < 0) {
                log_error("cannot prepare to report to the API server: %s", strerror(-r));
                return r;
        }
        return agent_watch(agent);
}

static int serve(struct agent *agent)
{
        int r = daemon_serve_control(agent->node.event, agent->options->run_dir, agent_control_routes, agent, &agent->control);

        if (r < 0)
                return r;
        return daemon_serve_metrics(agent->node.event, agent->options->metrics, agent_metrics_routes, agent, &agent->metrics);
}

int agent_new(const struct agent_options *options, struct agent **ret_agent)
{
        _cleanup_(agent_freep) struct agent *agent = calloc(1, sizeof(*agent));
        int r;

        if (!agent)
                return -ENOMEM;
        agent->options = options;
        agent->node.name = options->node;
        agent->node.cgroup = options->cgroup;
        agent->lock_fd = -1;
        agent->started_ns = now_monotonic_ns();

        daemon_raise_open_files();
        r = daemon_event_new(&agent->node.event);
        if (r < 0) {
                log_error("cannot make an event loop: %s", strerror(-r));
                return r;
        }
        r = daemon_lock(options->run_dir, &agent->lock_fd);
        if (r >= 0)
                r = serve(agent);
        if (r >= 0)
                r = make_parts(agent);
        if (r >= 0)
                r = talk_to_api(agent);
        if (r < 0)
                return r;

        *ret_agent = TAKE_PTR(agent);
        return 0;
}

int agent_run(struct agent *agent)
{
        sd_notify(false, "READY=1");
        return sd_event_loop(agent->node.event);
}

struct agent *agent_free(struct agent *agent)
{
        struct agent_policy *policy, *next;
        struct node *node;

        if (!agent)
                return NULL;
        node = &agent->node;

        node->settled = false; /* nothing is reported any more */
        node->hold = hold_suspend(node->hold);
        HASH_ITER(by_name, node->policies, policy, next)
                agent_policy_free(policy, true);
        kube_reflector_free(node->objects);
        kube_reflector_free(node->pods);
        claims_free(node->claims);
        report_free(node->report);
        lease_free(agent->lease);
        kube_client_free(agent->client);
        prober_free(node->prober);
        gpu_watch_free(node->gpu);
        activity_free(node->activity, true);
        http_server_free(agent->control);
        http_server_free(agent->metrics);
        event_log_free(node->events);
        sd_event_unref(node->event);
        close_fd(agent->lock_fd);
        free(agent);
        return NULL;
}
