/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "base/directory.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/time.h"

int daemon_parse_duration(const char *option, const char *text, uint64_t *ret_ns)
{
        uint64_t ns;

        if (duration_parse(text, &ns) < 0 || ns == 0) {
                log_error("--%s: \"%s\" is not a duration above 0; write it like \"5m\" or \"1m30s\"", option, text);
                return -EINVAL;
        }
        *ret_ns = ns;
        return 0;
}

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *signal, void *userdata)
{
        sd_notify(false, "STOPPING=1");
        log_info("stopping");
        return sd_event_exit(sd_event_source_get_event(source), 0);
}

int daemon_event_new(sd_event **ret_event)
{
        sd_event *event = NULL;
        sigset_t signals;
        int r;

        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGINT);
        if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
                return -errno;

        r = sd_event_new(&event);
        if (r >= 0)
                r = sd_event_add_signal(event, NULL, SIGTERM, on_stop, NULL);
        if (r >= 0)
                r = sd_event_add_signal(event, NULL, SIGINT, on_stop, NULL);
        if (r >= 0)
                r = sd_event_set_watchdog(event, true);
        if (r < 0) {
                sd_event_unref(event);
                return r;
        }
        *ret_event = event;
        return 0;
}

rlim_t daemon_raise_open_files(void)
{
        struct rlimit limit;
        rlim_t before;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return 0;
        before = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                log_warning("cannot raise the limit of open files from %llu: %s", (unsigned long long)before, strerror(errno));
        return before;
}

int daemon_lock(const char *run_dir, int *ret_fd)
{
        _cleanup_(freep) char *path = NULL;
        int r = directory_make(run_dir, 0700);

        if (r < 0) {
                log_error("cannot make %s: %s", run_dir, strerror(-r));
                return r;
        }
        if (asprintf(&path, "%s/lulld.lock", run_dir) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        r = lock_take(path, ret_fd);
        if (r == -EBUSY)
                log_error("another lulld serves %s; stop it, or give this one a --run-dir of its own", run_dir);
        else if (r < 0)
                log_error("cannot lock %s: %s", path, strerror(-r));
        return r;
}

int daemon_serve_control(sd_event *event, const char *run_dir, const struct http_route *routes, void *userdata,
                         struct http_server **ret_server)
{
        _cleanup_(freep) char *path = NULL;
        int fd = -1, r;

        if (asprintf(&path, "%s/control.sock", run_dir) < 0) {
                path = NULL;
                return -ENOMEM;
        }

        /* With the lock taken, what stands there is stale, even if a child of the earlier daemon still has it open. */
        unlink(path);
        r = http_listen_unix(path, &fd);
        if (r < 0) {
                log_error("cannot listen on %s: %s", path, strerror(-r));
                return r;
        }
        return http_server_new(event, fd, routes, userdata, ret_server);
}

int daemon_serve_metrics(sd_event *event, const char *address, const struct http_route *routes, void *userdata,
                         struct http_server **ret_server)
{
        int fd = -1, r;

        if (!address)
                return 0;

        r = http_listen_tcp(address, &fd);
        if (r == -EINVAL)
                log_error("--metrics: \"%s\" is not an address and port; write it like 127.0.0.1:9474 or [::1]:9474, or \"none\"",
                          address);
        else if (r < 0)
                log_error("--metrics: cannot listen on %s: %s", address, strerror(-r));
        if (r < 0)
                return r;
        return http_server_new(event, fd, routes, userdata, ret_server);
}
