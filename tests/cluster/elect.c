/* SPDX-License-Identifier: Apache-2.0 */
/* A candidate for a Lease, which says at every moment that it may act.
 *
 *   elect KUBECONFIG NAMESPACE LEASE IDENTITY LEASE-DURATION RENEW-DEADLINE RETRY-PERIOD
 *
 * It asks kube_election_is_leader() every few milliseconds. A line "act BEFORE AFTER" says that the answer was yes, given between
 * these nanoseconds of CLOCK_MONOTONIC, which all candidates share; "rest AT" that it is no again. "holder AT NAME" tells who holds
 * the Lease. SIGTERM has it give the Lease back, say "released AT" and end.
 *
 * ELECT_CLOCK_OFFSET (seconds) and ELECT_CLOCK_RATE put the clock wrong that the election goes by.
 */
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/macros.h"
#include "base/time.h"
#include "kube/chance.h"
#include "kube/election.h"

enum { ASK_EVERY_USEC = 3000, ASK_ACCURACY_USEC = 100, ARGUMENTS = 8 };

struct elect {
        sd_event *event;
        struct kube_client *client;
        struct kube_election *election;
        bool acting;
};

static uint64_t now_wrong_ns(void)
{
        const char *offset = getenv("ELECT_CLOCK_OFFSET"), *rate = getenv("ELECT_CLOCK_RATE");
        struct timespec now;
        double seconds;

        clock_gettime(CLOCK_BOOTTIME, &now);
        seconds = ((double)now.tv_sec + (double)now.tv_nsec / 1e9) * (rate ? atof(rate) : 1) + (offset ? atof(offset) : 0);
        return (uint64_t)(seconds * (double)NSEC_PER_SEC);
}

static int on_ask(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct elect *elect = userdata;
        uint64_t before = now_monotonic_ns();
        bool may_act = kube_election_is_leader(elect->election);
        uint64_t after = now_monotonic_ns();

        if (may_act)
                printf("act %" PRIu64 " %" PRIu64 "\n", before, after);
        else if (elect->acting)
                printf("rest %" PRIu64 "\n", before);
        fflush(stdout);
        elect->acting = may_act;
        sd_event_source_set_time_relative(source, ASK_EVERY_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void on_changed(const char *holder, void *userdata)
{
        printf("holder %" PRIu64 " %s\n", now_monotonic_ns(), holder);
        fflush(stdout);
}

static void on_released(void *userdata)
{
        struct elect *elect = userdata;

        printf("released %" PRIu64 "\n", now_monotonic_ns());
        fflush(stdout);
        sd_event_exit(elect->event, 0);
}

static int on_end(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        struct elect *elect = userdata;

        kube_election_release(elect->election, on_released, elect);
        return 0;
}

static int run(struct elect *elect, const struct kube_config *config, const struct kube_election_settings *settings)
{
        const struct kube_election_callbacks callbacks = { .changed = on_changed };
        const struct kube_election_sources wrong = { now_wrong_ns, kube_chance };
        bool is_wrong = getenv("ELECT_CLOCK_OFFSET") || getenv("ELECT_CLOCK_RATE");
        int r = sd_event_default(&elect->event);

        if (r >= 0)
                r = sd_event_add_signal(elect->event, NULL, SIGTERM, on_end, elect);
        if (r >= 0)
                r = kube_client_new(elect->event, config, &elect->client);
        if (r >= 0)
                r = kube_election_new(elect->client, settings, &callbacks, elect, is_wrong ? &wrong : NULL, &elect->election);
        if (r >= 0)
                r = sd_event_add_time_relative(elect->event, NULL, CLOCK_MONOTONIC, 0, ASK_ACCURACY_USEC, on_ask, elect);
        if (r >= 0)
                r = sd_event_loop(elect->event);
        kube_election_free(elect->election);
        kube_client_free(elect->client);
        sd_event_unref(elect->event);
        return r;
}

int main(int argc, char **argv)
{
        _cleanup_(kube_config_freep) struct kube_config *config = NULL;
        struct kube_election_settings settings = { 0 };
        char error[KUBE_CONFIG_ERROR_MAX];
        struct elect elect = { 0 };
        sigset_t end;

        if (argc != ARGUMENTS || duration_parse(argv[5], &settings.lease_duration_ns) < 0 ||
            duration_parse(argv[6], &settings.renew_deadline_ns) < 0 || duration_parse(argv[7], &settings.retry_period_ns) < 0) {
                fputs("usage: elect KUBECONFIG NAMESPACE LEASE IDENTITY LEASE-DURATION RENEW-DEADLINE RETRY-PERIOD\n", stderr);
                return 2;
        }
        settings.namespace = argv[2];
        settings.name = argv[3];
        settings.identity = argv[4];
        if (kube_config_load_file(argv[1], NULL, &config, error) < 0) {
                fprintf(stderr, "%s\n", error);
                return 1;
        }
        sigemptyset(&end);
        sigaddset(&end, SIGTERM);
        sigprocmask(SIG_BLOCK, &end, NULL);
        return run(&elect, config, &settings) < 0;
}
