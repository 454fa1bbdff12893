/* SPDX-License-Identifier: Apache-2.0 */
/* Readiness on one machine: a frontend is ready once somebody listens on it, which the application never notices being asked.
 *
 * readiness_look() is called when a socket of the workload begins to listen. That doorbell rings just before the kernel's tables show
 * the socket, and a listener outside the workload's cgroup rings none: so from readiness_begin() until all are ready the module also
 * looks by itself, after 200 us, doubling up to every 50 ms.
 *
 * A bound UDP socket counts once its server has settled, and after 100 ms at the latest (see settled.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "base/address.h"

struct listener;
struct readiness;
struct sockets;

struct readiness_callbacks {
        /* Whether @listener counts as the frontend's. */
        bool (*accept)(size_t index, const struct listener *listener, void *userdata);
        /* Whether the workload is done setting up what it has bound. */
        bool (*settled)(void *userdata);
        /* Frontend @index became ready. Called from the event loop. */
        void (*ready)(size_t index, void *userdata);
        /* All of them are; the module has stopped looking. */
        void (*all_ready)(void *userdata);
};

/* Copies @frontends; @sockets must outlive it. */
int readiness_new(sd_event *event, struct sockets *sockets, const struct frontend *frontends, size_t n_frontends,
                  const struct readiness_callbacks *callbacks, void *userdata, struct readiness **ret_readiness);
struct readiness *readiness_free(struct readiness *readiness);
DEFINE_CLEANUP(struct readiness, readiness_free)

/* Forgets what was ready and looks until everything is. */
int readiness_begin(struct readiness *readiness);
void readiness_end(struct readiness *readiness);
/* Looks soon, from the event loop; does nothing unless begun. */
void readiness_look(struct readiness *readiness);

size_t readiness_count(const struct readiness *readiness); /* ready since readiness_begin() */
bool readiness_is_ready(const struct readiness *readiness, size_t index);

/* Asks the kernel about every frontend now, whatever was begun: how many have a listener that counts. */
size_t readiness_count_now(struct readiness *readiness);
