/* SPDX-License-Identifier: Apache-2.0 */
/* Detacher: closes descriptors whose closing takes long, without making the event loop wait.
 *
 * The kernel takes a probe off when the last descriptor of its link is closed, and waits meanwhile for everybody who might still be in
 * it: some 110 ms for each perf link. A child process does that: the descriptors are its too, so that this process's close costs
 * nothing, and the child's does the work. One child at a time; the others wait here, and their probes stay on as long.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

struct detacher;

int detacher_new(sd_event *event, struct detacher **ret_detacher);
/* Does not wait for children, nor for what is left to them. Accepts NULL, returns NULL. */
struct detacher *detacher_free(struct detacher *detacher);

/* Takes the descriptors over, not the array. Where there is no child or memory to be had it closes them itself. */
void detacher_close(struct detacher *detacher, const int *fds, size_t n);

/* Whether probes given before may still be on. */
bool detacher_busy(const struct detacher *detacher);
