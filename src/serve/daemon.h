/* SPDX-License-Identifier: Apache-2.0 */
/* What every role of lulld begins with: options that several have, its event loop, its lock, its sockets. Each but the event loop logs
 * what it could not do. */
#pragma once

#include <stdint.h>
#include <sys/resource.h>
#include <systemd/sd-event.h>

#include "serve/http.h"

/* What an option's argument says, a duration above 0. Returns 0, or -EINVAL after logging what is wrong; @option is "stuck-after". */
int daemon_parse_duration(const char *option, const char *text, uint64_t *ret_ns);

/* An event loop that ends orderly at SIGTERM and SIGINT and tells systemd's watchdog, if there is one. Returns 0 or -errno. */
int daemon_event_new(sd_event **ret_event);

/* A workload that was woken once takes some ten descriptors, and the usual soft limit is 1024: there for what uses select(), which lulld
 * does not. Returns the soft limit from before, for children; 0 when it is not known. */
rlim_t daemon_raise_open_files(void);

/* Keeps a second daemon away from @run_dir, which is made if missing, with mode 0700. Closing *ret_fd gives it back. Returns 0 or
 * -errno. */
int daemon_lock(const char *run_dir, int *ret_fd);

/* The control socket in @run_dir, which must be locked. @routes as in http_server_new(). Returns 0 or -errno. */
int daemon_serve_control(sd_event *event, const char *run_dir, const struct http_route *routes, void *userdata,
                         struct http_server **ret_server);

/* The metrics at @address ("0.0.0.0:9474"); NULL: none, and *ret_server stays as it is. Returns 0 or -errno. */
int daemon_serve_metrics(sd_event *event, const char *address, const struct http_route *routes, void *userdata,
                         struct http_server **ret_server);
