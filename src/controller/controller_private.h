/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the controller know of each other; nobody else includes this.
 *
 * views.c keeps the watches and says whose policies a change is about; subject.c looks at one policy after the other, asks decide() and
 * does what it says, one request a policy at a time; what the requests are is in status.c, scale.c and metadata.c.
 */
#pragma once

#include <sys/queue.h>
#include <systemd/sd-event.h>
#include <uthash.h>

#include "controller/agents.h"
#include "controller/controller.h"
#include "controller/decide.h"
#include "controller/gone_nodes.h"
#include "controller/ignored.h"
#include "controller/leftovers.h"
#include "controller/parking_keeper.h"
#include "controller/pods.h"
#include "controller/resolve.h"
#include "controller/target.h"
#include "kube/client.h"
#include "kube/election.h"
#include "kube/patch.h"
#include "kube/recorder.h"
#include "kube/reflector.h"
#include "kube/scale_to_zero.h"

#define ENDPOINTS_KEPT_NS (10 * UINT64_C(1000000000)) /* in the status after Awake, until all data planes know them */
#define LEFTOVERS_KEPT_NS (5 * UINT64_C(1000000000))  /* what still looks alive then has outlived a short zero */
#define LEADER_SETTLES_NS (1 * UINT64_C(1000000000))  /* a new leader first sees what the last one has done */

enum {
        WRITES_MAX = 32,   /* at once; wakes do not count */
        LOOKS_MAX = 256,   /* policies looked at before others have their turn in the event loop */
        ROUND_NODES = 100, /* sleeps begin every ⌈nodes / this⌉ seconds */
};

struct event_log;
struct http_server;
struct subject;

struct known_policy { /* a ScaleToZero as the server has it */
        struct scale_to_zero *object;
        json_t *finalizers; /* all of them, or NULL */
        char *created;      /* as the API writes it: what is older sorts before */
        struct target_reference
                target; /* of a spec that is wrong otherwise; empty: that cannot be read either, or nothing is wrong */
};

struct autoscaler { /* a HorizontalPodAutoscaler */
        char *name;
        struct target_reference target; /* empty: it cannot be read */
};

struct pointers { /* a list without order */
        void **items;
        size_t n, room;
};

struct area { /* a namespace in which something is known */
        char *namespace;
        struct pointers services, slices, autoscalers; /* the reflectors' */
        LIST_HEAD(, subject) subjects;
        UT_hash_handle hh;
};

struct diagnosis; /* see look_at_pods.c */

struct subject { /* a policy at work */
        struct controller *controller;
        struct area *area;
        char *key;                   /* "namespace/name" */
        struct known_policy *viewed; /* the reflector's */
        struct known_policy *own;    /* newer, of an answer to this replica; or NULL */

        struct target_reference reference; /* of the target below */
        struct target *target;             /* NULL until its spec's target could be read */
        struct resolution *resolution;     /* NULL: not known */
        bool resolution_is_old;
        struct pods *pods; /* while it wakes and this replica leads, for their probes; or NULL */

        bool parking_is_unknown;                      /* what the status says of it stays */
        const char *parking_reason, *parking_message; /* why it is not parked, static, or NULL */

        struct ignored_policy *ignores; /* by its selectors; or NULL */

        struct phase_machine machine;
        int64_t epoch; /* that the machine is about; -1: none yet */
        uint64_t sleeping_version;
        struct leftovers *leftovers; /* of before zero_since_ns, while they may look alive; or NULL */
        uint64_t leftovers_until_ns; /* once the target has replicas again; 0: it has none */
        uint64_t demand_since_ns, zero_since_ns, blocked_until_ns, endpoints_until_ns;
        uint64_t scale_again_ns; /* the last change of scale is not to be made again before */
        uint32_t replicas_seen;
        bool has_been_up, woke;
        struct diagnosis *diagnosis;
        char *scale_problem; /* why the last change of scale was refused, or NULL */

        struct decision *pending; /* what the status is being written for */
        struct kube_request *request;
        bool busy;             /* a request runs */
        bool scaling;          /* of these, one for the target */
        uint64_t written_from; /* the version of the policy that it was made from */
        unsigned failures;
        uint64_t retry_ns;
        bool is_due, is_waiting, wants_round;
        sd_event_source *timer;

        uint64_t transitions[PHASE_MAX][PHASE_MAX];
        uint64_t wakes[WAKE_CAUSE_MAX];
        uint64_t wake_failures;

        TAILQ_ENTRY(subject) due;     /* is_due */
        TAILQ_ENTRY(subject) waiting; /* is_waiting */
        LIST_ENTRY(subject) neighbours;
        UT_hash_handle hh;
};

enum view {
        VIEW_POLICIES,
        VIEW_SERVICES,
        VIEW_SLICES,
        VIEW_ACTIVITIES,
        VIEW_LEASES,
        VIEW_AUTOSCALERS,
        VIEW_MAX,
};

struct controller {
        const struct controller_options *options;
        sd_event *event;
        struct kube_client *client;
        struct kube_election *election;
        struct kube_recorder *recorder;
        struct targets *targets;
        struct agents *agents;
        struct parking_keeper *parking;
        struct ignored *ignored;
        struct gone_nodes *gone_nodes;
        struct kube_reflector *views[VIEW_MAX];
        struct event_log *events;
        struct http_server *control, *metrics;
        int lock_fd; /* of RUN_DIR/lulld.lock: one daemon a run directory */

        struct area *areas;
        struct subject *subjects;
        TAILQ_HEAD(, subject) due;     /* to be looked at */
        TAILQ_HEAD(, subject) waiting; /* for fewer writes to run */
        sd_event_source *look_source;
        sd_event_source *all_timer;   /* all are to be looked at, soon */
        sd_event_source *agent_timer; /* an agent falls silent */
        sd_event_source *round_timer;
        bool was_current; /* the views, at the last look */
        bool round;       /* sleeps begin just now */
        uint64_t round_ns;
        uint64_t leading_since_ns; /* 0: not leading */
        unsigned n_writes;
        uint64_t started_ns;
        bool stopping;
};

/* views.c */
int views_start(struct controller *controller);
void views_end(struct controller *controller);
const char *view_name(enum view view); /* "scaletozeros", ... */
bool views_are_current(const struct controller *controller);
bool views_have_synced(const struct controller *controller, enum view first, enum view last);

/* known.c */
int known_policy_read(const json_t *object, struct known_policy **ret_known, const char **ret_field);
struct known_policy *known_policy_free(struct known_policy *known);
DEFINE_CLEANUP(struct known_policy, known_policy_free)
const struct target_reference *known_policy_target(const struct known_policy *known); /* or NULL */
int autoscaler_read(const json_t *object, struct autoscaler **ret_autoscaler);
int autoscaler_unreadable(const char *key, struct autoscaler **ret_autoscaler); /* whose target may be any of its namespace */
struct autoscaler *autoscaler_free(struct autoscaler *autoscaler);
DEFINE_CLEANUP(struct autoscaler, autoscaler_free)
uint64_t version_number(const char *resource_version); /* resourceVersions of one resource can be compared as numbers; 0: none */
bool target_reference_equal(const struct target_reference *a, const struct target_reference *b); /* whatever the version */
int target_reference_copy(const struct target_reference *reference, struct target_reference *ret_reference);
void target_reference_done(struct target_reference *reference);

/* area.c */
int area_get(struct controller *controller, const char *namespace, struct area **ret_area);
struct area *area_find(const struct controller *controller, const char *namespace); /* or NULL */
void area_forget_if_empty(struct controller *controller, struct area *area);
int pointers_add(struct pointers *pointers, void *item);
void pointers_remove(struct pointers *pointers, const void *item);
void area_is_due(struct area *area);                                                  /* all its policies */
void area_target_is_due(struct area *area, const struct target_reference *reference); /* those of one target */
void area_selected_is_due(struct area *area, const struct kube_service *service); /* those whose pods it selects, or that name it */
void area_slice_is_due(struct area *area, const struct kube_endpoint_slice *slice); /* those that use its Service, or own it */
const char *area_rival(const struct subject *subject);      /* the oldest other policy of its target, if older; or NULL */
const char *area_autoscaler(const struct subject *subject); /* of its target, or NULL */

/* subject.c */
int subject_new(struct controller *controller, const char *key, struct known_policy *viewed);
void subject_view(struct subject *subject, struct known_policy *viewed); /* as the reflector has it now */
struct subject *subject_free(struct subject *subject);
struct subject *subject_find(const struct controller *controller, const char *key); /* or NULL */
const struct known_policy *subject_known(const struct subject *subject);            /* the newest */
void subject_is_due(struct subject *subject, bool first);                           /* is looked at before others */
void subjects_are_due(struct controller *controller);                               /* all of them, soon */
bool controller_leads(const struct controller *controller);

/* look.c: one look at one policy. */
void subject_look(struct subject *subject);

/* park.c */
int park_start(struct controller *controller);
void park_nodes_changed(struct controller *controller); /* or who is alive among them */
/* As resolve(), with the parking frontends that the policy is to have now. */
int park_resolve(struct subject *subject, const struct resolve_input *input, struct resolution **ret_resolution);
/* Writes its slices. Returns whether the target may be scaled to zero for all that. */
bool park_write(struct subject *subject, const struct decision *decision);
void park_release(struct subject *subject); /* its ports, once nothing of it is parked */

/* request.c: what requests of a policy have in common. */
void request_dropped(struct controller *controller); /* its policy is gone */
/* Whether one may begin; else it is begun anew when others are over. @urgent: a wake. */
bool request_may_begin(struct subject *subject, bool urgent);
void request_begun(struct subject *subject);
/* Its end. A conflict or a failure is tried again, later each time, after a fresh read. @what: "write its status". */
void request_ended(struct subject *subject, const struct kube_reply *reply, const char *what);
/* It could not be begun. */
void request_failed(struct subject *subject, int error, const char *what);

/* status.c: returns whether a request was begun. */
bool status_write(struct subject *subject, const struct decide_input *input, const struct decision *decision);
bool status_write_invalid(struct subject *subject);
/* scale.c */
bool scale_write(struct subject *subject, const struct decision *decision);
/* metadata.c */
bool metadata_write(struct subject *subject, const struct decision *decision);
int metadata_ask(struct subject *subject, const char *annotation); /* "lull.dev/wake" */

/* look_at_pods.c: why a target does not start. */
void diagnosis_begin(struct subject *subject, uint64_t now_ns); /* a wake has failed */
/* Looks at its pods if it is time. Returns when to come back, or 0: no wake has failed. */
uint64_t diagnosis_go_on(struct subject *subject, const struct target_state *target, uint64_t now_ns);
struct diagnosis *diagnosis_free(struct diagnosis *diagnosis);
const char *diagnosis_reason(const struct diagnosis *diagnosis); /* NULL while it is not known */
const char *diagnosis_message(const struct diagnosis *diagnosis);

/* tell.c: events, for people. */
void tell_written(struct subject *subject, const struct decision *decision); /* its status */
void tell(struct subject *subject, enum kube_event_type type, const char *reason, const char *action, const char *format, ...)
        _printf_(5, 6);

/* api.c, view.c, exposition.c */
int serve_start(struct controller *controller);
void serve_end(struct controller *controller);
json_t *subject_json(const struct subject *subject);
int controller_metrics_text(const struct controller *controller, char **ret_text);
