/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a cgroup, and which driver libraries they have mapped.
 *
 * There is no event for "this process mapped that file", so it is a look now and then: all processes of a cgroup and those below it,
 * by cgroup.procs; of each /proc/PID/stat, whose size changes with every mapping; and of those that changed /proc/PID/maps.
 *
 * Other users' processes need CAP_SYS_PTRACE, opening by /proc/PID/map_files CAP_CHECKPOINT_RESTORE and CAP_DAC_READ_SEARCH.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
        PROCESSES_MAX = 4096,       /* of one cgroup and those below it */
        PROCESS_CGROUPS_MAX = 1024, /* of these */
        PROCESS_DEPTH_MAX = 8,
        PROCESS_LIBRARIES_MAX = 8,           /* that one process has mapped */
        PROCESS_MAPS_MAX = 16 * 1024 * 1024, /* bytes of /proc/PID/maps */
        MAPPING_PATH_MAX = 1024,
};

struct process_list {
        pid_t *pids; /* ascending, each once */
        size_t n;
        bool foreign; /* there are processes that this PID namespace does not show */
};

/* The caller frees it by process_list_done(). Returns 0, -ENOENT for a cgroup that is gone, -E2BIG past a bound, or -errno. */
int process_list_read(const char *cgroup, struct process_list *ret_list);
void process_list_done(struct process_list *list);

struct process_stamp {  /* a process is the same while began is, and its mappings while size is (all but surely) */
        uint64_t began; /* clock ticks since boot */
        uint64_t size;  /* of its address space */
};

/* Returns 0, -ESRCH for a process that is gone or a zombie, or -errno. */
int process_stamp_read(pid_t pid, struct process_stamp *ret_stamp);

struct mapping {                /* of a driver library's code */
        uint64_t device, inode; /* as /proc/PID/maps shows them */
        uint64_t begin, end;    /* the address range */
        bool deleted;
        char path[MAPPING_PATH_MAX]; /* in the process's mount namespace */
};

/* One mapping for each distinct driver library. Returns how many, -ESRCH for a process that is gone, -E2BIG past a bound, or -errno. */
int process_mappings(pid_t pid, struct mapping ret_mappings[static PROCESS_LIBRARIES_MAX]);
/* The same from a line in the form of proc_pid_maps(5); false when it is not a driver library's code. */
bool mapping_parse(char *line, struct mapping *ret_mapping);

/* Opens the file behind a mapping, also one that is deleted or hidden by a mount. Returns a descriptor for reading, -ESRCH when the
 * mapping is gone, -EREMOTE when a process serves that file system (FUSE), or -errno. */
int mapping_open(pid_t pid, const struct mapping *mapping);
