/* SPDX-License-Identifier: Apache-2.0 */
/* Connections from before the programs of which no payload has come since: they have no entry in the map, so that nothing is known of
 * their requests. They are found in /proc/PID/net, which shows the network namespace of any process to everybody. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "activity/workload.h"
#include "base/macros.h"

enum { WALK_DEPTH_MAX = 8 };

static void closedirp(DIR **directory)
{
        if (*directory)
                closedir(*directory);
}

static int first_in(int cgroup_fd, intmax_t *ret_pid)
{
        int fd = openat(cgroup_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
        _cleanup_(fclosep) FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

        if (!file)
                return -errno;
        return fscanf(file, "%jd", ret_pid) == 1 && *ret_pid > 0 ? 0 : -ESRCH;
}

/* Any process in the cgroup or below: a pod's are all in one network namespace. */
static int find_process(int cgroup_fd, unsigned depth, intmax_t *ret_pid)
{
        _cleanup_(closedirp) DIR *directory = NULL;
        int fd, r;

        r = first_in(cgroup_fd, ret_pid);
        if (r == 0 || depth == 0)
                return r;
        fd = openat(cgroup_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        directory = fd < 0 ? NULL : fdopendir(fd);
        if (!directory)
                return -errno;
        for (struct dirent *entry; (entry = readdir(directory));) {
                _cleanup_(close_fdp) int child = -1;

                if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
                        continue;
                child = openat(cgroup_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (child >= 0 && find_process(child, depth - 1, ret_pid) == 0)
                        return 0;
        }
        return -ESRCH;
}

bool has_processes(const struct workload *workload)
{
        intmax_t pid;

        return find_process(workload->cgroup_fd, WALK_DEPTH_MAX, &pid) != -ESRCH;
}

/* "0100007F:1F90": each 32 bits as the machine's own number. */
static bool parse_endpoint(const char *text, __u8 ret_address[16], __u16 *ret_port)
{
        uint32_t words[4];
        unsigned port;

        if (sscanf(text, "%8" SCNx32 "%8" SCNx32 "%8" SCNx32 "%8" SCNx32 ":%4x", &words[0], &words[1], &words[2], &words[3],
                   &port) == 5) {
                memcpy(ret_address, words, sizeof(words));
        } else if (sscanf(text, "%8" SCNx32 ":%4x", &words[0], &port) == 2) {
                struct address address = address_from_ipv4(words[0]);

                memcpy(ret_address, address.bytes, sizeof(address.bytes));
        } else {
                return false;
        }
        *ret_port = (__u16)port;
        return true;
}

bool connection_line_parse(const char *line, struct activity_tuple *ret_tuple)
{
        struct activity_tuple tuple = { .transport = IPPROTO_TCP };
        char local[64], remote[64];
        unsigned state;

        if (sscanf(line, " %*[0-9]: %63s %63s %2x", local, remote, &state) != 3)
                return false;
        if (state != TCP_ESTABLISHED && state != TCP_CLOSE_WAIT)
                return false;
        if (!parse_endpoint(local, tuple.local, &tuple.local_port) || !parse_endpoint(remote, tuple.remote, &tuple.remote_port))
                return false;
        *ret_tuple = tuple;
        return true;
}

static int count_unknown_in(const struct workload *workload, const char *path, const struct tuples *known, uint32_t *count)
{
        _cleanup_(fclosep) FILE *file = fopen(path, "re");
        _cleanup_(freep) char *line = NULL;
        size_t size = 0;

        if (!file)
                return errno == ENOENT ? 0 : -errno; /* no IPv6, or the process has ended */
        while (getline(&line, &size, file) > 0) {
                struct activity_socket socket = { .accepted = 1 };

                if (connection_line_parse(line, &socket.tuple) && keys_classify(&workload->keys, &socket) == ACTIVITY_SERVED &&
                    !tuples_have(known, &socket.tuple))
                        (*count)++;
        }
        return ferror(file) ? -EIO : 0;
}

int workload_count_earlier(const struct workload *workload, uint32_t *ret_count)
{
        _cleanup_(tuples_done) struct tuples known = { 0 };
        static const char *const tables[] = { "tcp", "tcp6" };
        uint32_t count = 0;
        intmax_t pid;
        int r;

        r = find_process(workload->cgroup_fd, WALK_DEPTH_MAX, &pid);
        if (r == -ESRCH) {
                *ret_count = 0;
                return 0;
        }
        if (r >= 0)
                r = workload_known_tuples(workload, &known); /* first: one that begins meanwhile is unknown, none is overlooked */
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(tables); i++) {
                char path[64];

                snprintf(path, sizeof(path), "/proc/%jd/net/%s", pid, tables[i]);
                r = count_unknown_in(workload, path, &known, &count);
        }
        if (r < 0)
                return r;
        *ret_count = count;
        return 0;
}
