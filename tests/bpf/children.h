/* SPDX-License-Identifier: Apache-2.0 */
/* Cgroups of a test program's own, and children that do something in one. */
#pragma once

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cgroup.h"

typedef char cgroup_path[PATH_MAX];

/* "<cgroup2>/lull-test-NAME-PID" */
static inline void make_cgroup(const char *name, cgroup_path ret_path)
{
        char *root;

        assert_int_equal(cgroup_find_root(&root), 0);
        snprintf(ret_path, PATH_MAX, "%s/lull-test-%s-%d", root, name, getpid());
        free(root);
        assert_int_equal(mkdir(ret_path, 0755), 0);
}

static inline void make_cgroup_below(const char *cgroup, const char *name, cgroup_path ret_path)
{
        assert_true(snprintf(ret_path, PATH_MAX, "%s/%s", cgroup, name) < PATH_MAX);
        assert_int_equal(mkdir(ret_path, 0755), 0);
}

static inline uint64_t id_of(const char *cgroup)
{
        uint64_t id;

        assert_int_equal(cgroup_id(cgroup, &id), 0);
        return id;
}

/* 0 or 1. */
static inline int enter_cgroup(const char *cgroup)
{
        char path[PATH_MAX + 16];
        FILE *file;

        snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
        file = fopen(path, "we");
        if (!file)
                return 1;
        fputs("0", file);
        return fclose(file) != 0;
}

/* Runs what(argument) in a child that has entered @cgroup; returns what it returns. */
static inline int in_cgroup(const char *cgroup, int (*what)(const char *argument), const char *argument)
{
        pid_t child = fork();
        int status;

        if (child == 0)
                _exit(enter_cgroup(cgroup) ? 127 : what(argument));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 127);
        return WEXITSTATUS(status);
}
