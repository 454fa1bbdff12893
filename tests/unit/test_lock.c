/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/lock.h"
#include "base/macros.h"

static int make_path(void **state)
{
        static const char pattern[] = "/tmp/lull-lock-XXXXXX";
        char *path = malloc(sizeof(pattern));
        int fd;

        if (!path)
                return -1;
        *(char *)__builtin_mempcpy(path, pattern, sizeof(pattern) - 1) = '\0';
        fd = mkstemp(path);
        close_fd(fd);
        *state = path;
        return fd < 0 ? -1 : 0;
}

static int remove_path(void **state)
{
        unlink(*state);
        free(*state);
        return 0;
}

/* What lock_take() says in another process, as an exit status. */
static int taken_elsewhere(const char *path)
{
        int status, fd = -1;
        pid_t pid = fork();

        if (pid == 0)
                _exit(-lock_take(path, &fd));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WEXITSTATUS(status);
}

static void a_second_process_is_kept_out_until_the_first_gives_it_back(void **state)
{
        int fd = -1;

        assert_int_equal(lock_take(*state, &fd), 0);
        assert_int_equal(taken_elsewhere(*state), EBUSY);
        fd = close_fd(fd);
        assert_int_equal(taken_elsewhere(*state), 0);
}

/* The daemon ends while a child of its has not run its command yet: the next daemon must not wait for that. */
static void a_child_that_lives_on_does_not_keep_the_lock(void **state)
{
        int alive[2], status;
        pid_t owner;
        char byte;

        assert_int_equal(pipe(alive), 0);
        owner = fork();
        if (owner == 0) {
                int fd = -1;

                if (lock_take(*state, &fd) < 0)
                        _exit(1);
                if (fork() == 0) {
                        close(alive[1]);
                        (void)!read(alive[0], &byte, 1); /* until the test is over */
                        _exit(0);
                }
                _exit(0);
        }
        assert_int_equal(waitpid(owner, &status, 0), owner);
        assert_int_equal(WEXITSTATUS(status), 0);

        assert_int_equal(taken_elsewhere(*state), 0);
        close(alive[0]);
        close(alive[1]);
}

static void what_cannot_be_opened_is_an_error_and_leaves_the_output_alone(void **state)
{
        int fd = 77;

        assert_int_equal(lock_take("/nonexistent/lock", &fd), -ENOENT);
        assert_int_equal(fd, 77);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_second_process_is_kept_out_until_the_first_gives_it_back, make_path, remove_path),
                cmocka_unit_test_setup_teardown(a_child_that_lives_on_does_not_keep_the_lock, make_path, remove_path),
                cmocka_unit_test(what_cannot_be_opened_is_an_error_and_leaves_the_output_alone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
