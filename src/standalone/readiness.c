/* SPDX-License-Identifier: Apache-2.0 */
#include "standalone/readiness.h"

#include <netinet/in.h>
#include <string.h>
#include <time.h>

#include "base/time.h"
#include "hold/sockets.h"

enum { LOOK_PRIORITY = -10 }; /* before everything that is not about packets */

#define LOOK_FIRST_NS (200 * NSEC_PER_USEC)
#define LOOK_SLOWEST_NS (50 * NSEC_PER_MSEC)
#define SETTLE_MAX_NS (100 * NSEC_PER_MSEC)

struct readiness {
        struct sockets *sockets;
        struct frontend *frontends;
        bool *ready;
        uint64_t *bound_ns; /* UDP: when it was first seen bound; 0: not yet */
        size_t n_frontends, n_ready;
        struct readiness_callbacks callbacks;
        void *userdata;

        sd_event *event;
        sd_event_source *timer; /* NULL until readiness_begin(): most policies sleep */
        uint64_t delay_ns;
};

static bool frontend_has_listener(struct readiness *readiness, size_t index)
{
        struct listener listener;

        if (sockets_find_listener(readiness->sockets, &readiness->frontends[index], &listener) < 0)
                return false;
        return readiness->callbacks.accept(index, &listener, readiness->userdata);
}

static bool frontend_has_settled(struct readiness *readiness, size_t index)
{
        uint64_t now = now_monotonic_ns();

        if (readiness->frontends[index].protocol != IPPROTO_UDP)
                return true;
        if (readiness->bound_ns[index] == 0) {
                readiness->bound_ns[index] = now;
                readiness->delay_ns = LOOK_FIRST_NS;
                return false;
        }
        return readiness->callbacks.settled(readiness->userdata) || now - readiness->bound_ns[index] >= SETTLE_MAX_NS;
}

static void look(struct readiness *readiness)
{
        for (size_t i = 0; i < readiness->n_frontends; i++) {
                if (readiness->ready[i] || !frontend_has_listener(readiness, i) || !frontend_has_settled(readiness, i))
                        continue;
                readiness->ready[i] = true;
                readiness->n_ready++;
                readiness->callbacks.ready(i, readiness->userdata);
        }
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct readiness *readiness = userdata;

        look(readiness);
        if (readiness->n_ready == readiness->n_frontends) {
                readiness_end(readiness);
                readiness->callbacks.all_ready(readiness->userdata);
                return 0;
        }

        sd_event_source_set_time_relative(source, readiness->delay_ns / NSEC_PER_USEC);
        sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        readiness->delay_ns = MIN(readiness->delay_ns * 2, LOOK_SLOWEST_NS);
        return 0;
}

int readiness_new(sd_event *event, struct sockets *sockets, const struct frontend *frontends, size_t n_frontends,
                  const struct readiness_callbacks *callbacks, void *userdata, struct readiness **ret_readiness)
{
        _cleanup_(readiness_freep) struct readiness *readiness = calloc(1, sizeof(*readiness));

        if (!readiness)
                return -ENOMEM;
        readiness->event = sd_event_ref(event);
        readiness->sockets = sockets;
        readiness->callbacks = *callbacks;
        readiness->userdata = userdata;
        readiness->n_frontends = n_frontends;
        readiness->frontends = calloc(n_frontends, sizeof(*readiness->frontends));
        readiness->ready = calloc(n_frontends, sizeof(*readiness->ready));
        readiness->bound_ns = calloc(n_frontends, sizeof(*readiness->bound_ns));
        if (!readiness->frontends || !readiness->ready || !readiness->bound_ns)
                return -ENOMEM;
        memcpy(readiness->frontends, frontends, n_frontends * sizeof(*frontends));

        *ret_readiness = TAKE_PTR(readiness);
        return 0;
}

struct readiness *readiness_free(struct readiness *readiness)
{
        if (!readiness)
                return NULL;

        sd_event_source_disable_unref(readiness->timer);
        sd_event_unref(readiness->event);
        free(readiness->frontends);
        free(readiness->ready);
        free(readiness->bound_ns);
        free(readiness);
        return NULL;
}

static int look_soon(struct readiness *readiness)
{
        readiness->delay_ns = LOOK_FIRST_NS;
        sd_event_source_set_time(readiness->timer, 0);
        return sd_event_source_set_enabled(readiness->timer, SD_EVENT_ONESHOT);
}

int readiness_begin(struct readiness *readiness)
{
        memset(readiness->ready, 0, readiness->n_frontends * sizeof(*readiness->ready));
        memset(readiness->bound_ns, 0, readiness->n_frontends * sizeof(*readiness->bound_ns));
        readiness->n_ready = 0;
        if (!readiness->timer) {
                int r = sd_event_add_time(readiness->event, &readiness->timer, CLOCK_MONOTONIC, 0, 1, on_timer, readiness);

                if (r < 0)
                        return r;
                sd_event_source_set_priority(readiness->timer, LOOK_PRIORITY);
        }
        return look_soon(readiness);
}

void readiness_end(struct readiness *readiness)
{
        if (readiness->timer)
                sd_event_source_set_enabled(readiness->timer, SD_EVENT_OFF);
}

void readiness_look(struct readiness *readiness)
{
        int enabled;

        if (readiness->timer && sd_event_source_get_enabled(readiness->timer, &enabled) > 0)
                look_soon(readiness);
}

size_t readiness_count(const struct readiness *readiness)
{
        return readiness->n_ready;
}

bool readiness_is_ready(const struct readiness *readiness, size_t index)
{
        return readiness->ready[index];
}

size_t readiness_count_now(struct readiness *readiness)
{
        size_t count = 0;

        for (size_t i = 0; i < readiness->n_frontends; i++)
                count += frontend_has_listener(readiness, i);
        return count;
}
