/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/parking_keeper.h"

#include <string.h>
#include <sys/queue.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/time.h"
#include "controller/parking_hosts.h"

#define WATCH_LAG_NS NSEC_PER_SEC
#define TIMER_ACCURACY_US 50000

struct writing { /* a policy's slices */
        struct parking_keeper *keeper;
        struct kube_request *request;
        enum parking_action action; /* of the last step */
        char *name;                 /* likewise; NULL: none yet */
        uint64_t retry_ns;
        sd_event_source *timer; /* looks again; until then this step is not made once more */
        char *problem;
        bool in_line;
        TAILQ_ENTRY(writing) line;
        UT_hash_handle hh;
        char policy[];
};

struct parking_keeper {
        struct kube_client *client;
        struct parking_keeper_settings settings;
        void *userdata;
        struct parking_ports *ports;
        struct parking_hosts *hosts;
        struct writing *writings;
        unsigned n_requests;
        TAILQ_HEAD(, writing) line; /* they look again when others' requests are done */
};

static void on_nodes(void *userdata)
{
        const struct parking_keeper *keeper = userdata;

        keeper->settings.nodes_changed(keeper->userdata);
}

int parking_keeper_new(struct kube_client *client, const struct parking_keeper_settings *settings, void *userdata,
                       struct parking_keeper **ret_keeper)
{
        _cleanup_(parking_keeper_freep) struct parking_keeper *keeper = calloc(1, sizeof(*keeper));
        int r;

        if (!keeper)
                return -ENOMEM;
        keeper->client = client;
        keeper->settings = *settings;
        keeper->userdata = userdata;
        TAILQ_INIT(&keeper->line);
        r = parking_ports_new(settings->first, settings->last, &keeper->ports);
        if (r >= 0)
                r = parking_hosts_new(client, settings->namespace, on_nodes, keeper, &keeper->hosts);
        if (r < 0)
                return r;
        *ret_keeper = TAKE_PTR(keeper);
        return 0;
}

static void leave_line(struct writing *writing)
{
        if (writing->in_line)
                TAILQ_REMOVE(&writing->keeper->line, writing, line);
        writing->in_line = false;
}

/* Who is next may have nothing to write any more, or not yet: then the one behind it is, as soon as that is known. */
static void line_goes_on(struct parking_keeper *keeper)
{
        struct writing *next = TAILQ_FIRST(&keeper->line);

        if (!next || keeper->n_requests >= PARKING_REQUESTS_MAX)
                return;
        leave_line(next);
        keeper->settings.again(next->policy, keeper->userdata);
}

static void request_over(struct writing *writing)
{
        writing->request = NULL;
        writing->keeper->n_requests--;
        line_goes_on(writing->keeper);
}

static void writing_free(struct writing *writing)
{
        leave_line(writing);
        HASH_DEL(writing->keeper->writings, writing);
        if (writing->request) {
                kube_request_cancel(writing->request);
                request_over(writing);
        }
        sd_event_source_disable_unref(writing->timer);
        free(writing->name);
        free(writing->problem);
        free(writing);
}

struct parking_keeper *parking_keeper_free(struct parking_keeper *keeper)
{
        struct writing *writing, *next;

        if (!keeper)
                return NULL;
        while ((writing = TAILQ_FIRST(&keeper->line)))
                leave_line(writing);
        HASH_ITER(hh, keeper->writings, writing, next)
                writing_free(writing);
        parking_hosts_free(keeper->hosts);
        parking_ports_free(keeper->ports);
        free(keeper);
        return NULL;
}

int parking_keeper_learn(struct parking_keeper *keeper, const char *policy, const struct scale_to_zero_status *status)
{
        return parking_ports_learn(keeper->ports, policy, status);
}

int parking_keeper_plan(struct parking_keeper *keeper, const char *policy, const struct parking_services *services,
                        struct parking_plan *ret_plan)
{
        _cleanup_(freep) struct parking_node *nodes = NULL;
        size_t n_nodes;
        int r = parking_hosts_list(keeper->hosts, keeper->settings.is_fresh, keeper->userdata, &nodes, &n_nodes);

        return r < 0 ? r : parking_plan(keeper->ports, policy, services, nodes, n_nodes, ret_plan);
}

static struct writing *writing_find(const struct parking_keeper *keeper, const char *policy)
{
        struct writing *writing;

        HASH_FIND_STR(keeper->writings, policy, writing);
        return writing;
}

static struct writing *writing_get(struct parking_keeper *keeper, const char *policy)
{
        struct writing *writing = writing_find(keeper, policy);
        size_t length = strlen(policy) + 1;

        if (writing)
                return writing;
        writing = calloc(1, sizeof(*writing) + length);
        if (!writing)
                return NULL;
        memcpy(writing->policy, policy, length);
        writing->keeper = keeper;
        writing->retry_ns = PARKING_RETRY_MIN_NS;
        HASH_ADD_STR(keeper->writings, policy, writing);
        if (!writing->hh.tbl) {
                free(writing);
                return NULL;
        }
        return writing;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct writing *writing = userdata;

        writing->timer = sd_event_source_disable_unref(writing->timer);
        writing->keeper->settings.again(writing->policy, writing->keeper->userdata);
        return 0;
}

static void look_later(struct writing *writing, uint64_t delay_ns)
{
        writing->timer = sd_event_source_disable_unref(writing->timer);
        (void)sd_event_add_time_relative(kube_client_event(writing->keeper->client), &writing->timer, CLOCK_MONOTONIC,
                                         delay_ns / NSEC_PER_USEC, TIMER_ACCURACY_US, on_timer, writing);
}

static void failed(struct writing *writing, const char *why)
{
        free(writing->problem);
        if (asprintf(&writing->problem, "EndpointSlice %s cannot be written: %s", writing->name, why) < 0)
                writing->problem = NULL;
        look_later(writing, writing->retry_ns);
        writing->retry_ns = MIN(writing->retry_ns * 2, PARKING_RETRY_MAX_NS);
}

/* What is there already, has changed, or is gone is for the watch to tell. */
static bool is_for_the_watch(const struct writing *writing, const struct kube_reply *reply)
{
        if (reply->error < 0)
                return false;
        return kube_reply_is_ok(reply) || reply->status.code == 409 ||
               (reply->status.code == 404 && writing->action != PARKING_CREATE);
}

static void on_written(const struct kube_reply *reply, void *userdata)
{
        struct writing *writing = userdata;

        request_over(writing);
        if (!is_for_the_watch(writing, reply)) {
                failed(writing, *reply->status.message ? reply->status.message : strerror(-reply->error));
                return;
        }
        free(writing->problem);
        writing->problem = NULL;
        writing->retry_ns = PARKING_RETRY_MIN_NS;
        look_later(writing, WATCH_LAG_NS);
}

/* It has just been done, or has failed and is tried again by the timer. */
static bool is_waiting(const struct writing *writing, const struct parking_step *step)
{
        return writing->timer && writing->action == step->action && strcmp(writing->name, step->name) == 0;
}

static void step_take(struct writing *writing, const char *namespace, struct parking_step *step)
{
        static const struct kube_request_callbacks callbacks = { .done = on_written };
        int r;

        free(writing->name);
        writing->name = TAKE_PTR(step->name);
        writing->action = step->action;
        r = parking_step_start(writing->keeper->client, namespace,
                               &(struct parking_step){ .action = step->action, .name = writing->name, .body = step->body },
                               &callbacks, writing, &writing->request);
        if (r < 0)
                failed(writing, strerror(-r));
        else
                writing->keeper->n_requests++;
}

static void get_in_line(struct writing *writing)
{
        if (!writing->in_line)
                TAILQ_INSERT_TAIL(&writing->keeper->line, writing, line);
        writing->in_line = true;
}

static void step_take_or_wait(struct parking_keeper *keeper, const char *policy, const char *namespace, struct parking_step *step)
{
        struct writing *writing = writing_get(keeper, policy);

        if (!writing || is_waiting(writing, step))
                return;
        if (keeper->n_requests >= PARKING_REQUESTS_MAX)
                get_in_line(writing);
        else
                step_take(writing, namespace, step);
}

/* A slice that has just been created may be yet to come: the timer looks again. */
static void settled(struct writing *writing)
{
        if (!writing)
                return;
        leave_line(writing);
        if (!writing->timer || writing->action != PARKING_CREATE) {
                writing_free(writing);
                return;
        }
        free(writing->problem);
        writing->problem = NULL;
}

void parking_keeper_write(struct parking_keeper *keeper, const char *policy, const struct scale_to_zero *object,
                          const struct parking_services *services, const struct parking_plan *plan,
                          const struct kube_endpoint_slice *const *slices, size_t n_slices)
{
        _cleanup_(parking_step_done) struct parking_step step = { 0 };
        struct writing *writing = writing_find(keeper, policy);

        if (writing && writing->request)
                return; /* it looks again by itself */
        if (parking_next(object, services, plan, slices, n_slices, &step) < 0)
                return;
        if (step.action == PARKING_NOTHING)
                settled(writing);
        else
                step_take_or_wait(keeper, policy, object->metadata.namespace, &step);
        line_goes_on(keeper);
}

bool parking_keeper_is_busy(const struct parking_keeper *keeper, const char *policy)
{
        const struct writing *writing = writing_find(keeper, policy);

        return writing && (writing->request || writing->timer || writing->in_line);
}

void parking_keeper_release(struct parking_keeper *keeper, const char *policy)
{
        parking_ports_release(keeper->ports, policy);
}

void parking_keeper_forget(struct parking_keeper *keeper, const char *policy)
{
        struct writing *writing = writing_find(keeper, policy);

        if (writing)
                writing_free(writing);
        line_goes_on(keeper);
        parking_keeper_release(keeper, policy);
}

const char *parking_keeper_problem(const struct parking_keeper *keeper, const char *policy)
{
        const struct writing *writing = writing_find(keeper, policy);

        return writing ? writing->problem : NULL;
}

const struct kube_reflector *parking_keeper_view(const struct parking_keeper *keeper)
{
        return parking_hosts_view(keeper->hosts);
}
