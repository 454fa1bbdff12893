/* SPDX-License-Identifier: Apache-2.0 */
#include "standalone/client.h"

#include <dirent.h>
#include <inttypes.h>
#include <string.h>

#include "base/cgroup.h"
#include "hold/sockets.h"

enum {
        PROCESSES_MAX = 512,
        PROCESSES_AT_ONCE = 8, /* so that one turn of the event loop stays well below a millisecond */
};

struct client_search {
        struct client *client;
        char socket_link[48]; /* what /proc/PID/fd/N links to: "socket:[INODE]" */
        pid_t processes[PROCESSES_MAX];
        size_t n_processes, next;
        sd_event_source *idle;
};

struct client_search *client_search_free(struct client_search *search)
{
        if (!search)
                return NULL;

        sd_event_source_disable_unref(search->idle);
        free(search);
        return NULL;
}

static bool process_has_socket(pid_t pid, const char *socket_link)
{
        char path[64], link[64];
        struct dirent *entry;
        bool found = false;
        DIR *directory;

        snprintf(path, sizeof(path), "/proc/%d/fd", pid);
        directory = opendir(path);
        if (!directory)
                return false;

        while (!found && (entry = readdir(directory))) {
                ssize_t length = readlinkat(dirfd(directory), entry->d_name, link, sizeof(link) - 1);

                if (length < 0)
                        continue;
                link[length] = '\0';
                found = strcmp(link, socket_link) == 0;
        }
        closedir(directory);
        return found;
}

static void process_name(pid_t pid, char *name, size_t size)
{
        char path[64];
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/comm", pid);
        file = fopen(path, "re");
        if (!file)
                return;
        if (fgets(name, (int)size, file))
                name[strcspn(name, "\n")] = '\0';
        fclose(file);
}

static int on_idle(sd_event_source *source, void *userdata)
{
        struct client_search *search = userdata;
        size_t end = MIN(search->next + PROCESSES_AT_ONCE, search->n_processes);

        for (; search->next < end; search->next++) {
                pid_t pid = search->processes[search->next];

                if (!process_has_socket(pid, search->socket_link))
                        continue;
                search->client->pid = pid;
                process_name(pid, search->client->process, sizeof(search->client->process));
                search->next = search->n_processes;
        }

        sd_event_source_set_enabled(source, search->next < search->n_processes ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
        return 0;
}

static void read_processes(struct client_search *search, const char *cgroup_root, const char *cgroup)
{
        _cleanup_(freep) char *path = NULL;
        _cleanup_(fclosep) FILE *file = NULL;
        pid_t pid;

        if (asprintf(&path, "%s%s/cgroup.procs", cgroup_root, cgroup) < 0)
                return;
        file = fopen(path, "re");
        if (!file)
                return;
        while (search->n_processes < PROCESSES_MAX && fscanf(file, "%d", &pid) == 1)
                search->processes[search->n_processes++] = pid;
}

int client_search_new(sd_event *event, struct sockets *sockets, const char *cgroup_root, struct client *client,
                      struct client_search **ret_search)
{
        _cleanup_(client_search_freep) struct client_search *search = NULL;
        _cleanup_(freep) char *cgroup = NULL;
        struct socket_owner owner;
        int r;

        r = sockets_find_client(sockets, &client->flow, &owner);
        if (r < 0)
                return r;
        r = cgroup_path_by_id(cgroup_root, owner.cgroup, &cgroup);
        if (r < 0)
                return r;

        search = calloc(1, sizeof(*search));
        if (!search)
                return -ENOMEM;
        search->client = client;
        snprintf(search->socket_link, sizeof(search->socket_link), "socket:[%" PRIu64 "]", owner.inode);
        snprintf(client->cgroup, sizeof(client->cgroup), "%s", cgroup);
        read_processes(search, cgroup_root, cgroup);

        r = sd_event_add_defer(event, &search->idle, on_idle, search);
        if (r < 0)
                return r;
        sd_event_source_set_priority(search->idle, SD_EVENT_PRIORITY_IDLE);

        *ret_search = TAKE_PTR(search);
        return 0;
}
