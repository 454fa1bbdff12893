/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

#include "serve/event_log.h"
#include "serve/http.h"
#include "serve/http_path.h"

#define CLOSE "Connection: close\r\nHost: lulld\r\n\r\n"

struct fixture {
        char directory[32];
        char path[64];
        sd_event *event;
        struct event_log *log;
        struct http_server *server;
};

static void on_json(struct http_request *request, void *userdata)
{
        http_reply_json(request, 200,
                        json_pack("{s:s, s:s?}", "segment", http_request_segment(request, 0), "after",
                                  http_request_query(request, "after")));
}

static void on_text(struct http_request *request, void *userdata)
{
        http_reply_text(request, 503, "text/plain", strdup("not yet\n"));
}

static void on_stream(struct http_request *request, void *userdata)
{
        struct fixture *fixture = userdata;

        http_reply_event_stream(request, fixture->log, 0);
}

static void on_broken(struct http_request *request, void *userdata)
{
        http_reply_json(request, 200, NULL);
}

static const struct http_route routes[] = {
        { "GET", "/v1/things/{}", on_json }, { "POST", "/v1/things/{}/wake", on_json }, { "GET", "/healthz", on_text },
        { "GET", "/v1/stream", on_stream },  { "GET", "/v1/broken", on_broken },        { NULL, NULL, NULL },
};

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        int fd;

        assert_non_null(fixture);
        strcpy(fixture->directory, "/tmp/lull-http-XXXXXX");
        assert_non_null(mkdtemp(fixture->directory));
        snprintf(fixture->path, sizeof(fixture->path), "%s/control.sock", fixture->directory);
        assert_int_equal(sd_event_new(&fixture->event), 0);
        assert_int_equal(event_log_new(&fixture->log), 0);
        assert_int_equal(http_listen_unix(fixture->path, &fd), 0);
        assert_int_equal(http_server_new(fixture->event, fd, routes, fixture, &fixture->server), 0);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        http_server_free(fixture->server);
        event_log_free(fixture->log);
        sd_event_unref(fixture->event);
        unlink(fixture->path);
        rmdir(fixture->directory);
        free(fixture);
        return 0;
}

static int connect_to(const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        assert_true(fd >= 0);
        strcpy(address.sun_path, path);
        assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        return fd;
}

static void send_all(const struct fixture *fixture, int fd, const char *bytes, size_t length)
{
        while (length > 0) {
                ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);

                if (n < 0 && errno == EAGAIN) {
                        assert_true(sd_event_run(fixture->event, 5000000) > 0);
                        continue;
                }
                if (n < 0)
                        return; /* the server hung up: what it said before counts */
                bytes += n;
                length -= (size_t)n;
        }
}

/* Runs the server until @until was received, or until it closes the connection. */
static size_t receive(const struct fixture *fixture, int fd, char *buffer, size_t size, const char *until)
{
        size_t length = 0;

        for (;;) {
                ssize_t n = recv(fd, buffer + length, size - 1 - length, 0);

                if (n == 0 || (n < 0 && errno != EAGAIN))
                        return length;
                if (n < 0) {
                        if (sd_event_run(fixture->event, 5000000) == 0)
                                fail_msg("nothing comes any more after: %.*s", (int)length, buffer);
                        continue;
                }
                length += (size_t)n;
                buffer[length] = '\0';
                if (until && strstr(buffer, until))
                        return length;
        }
}

static void exchange(const struct fixture *fixture, const char *request, char *buffer, size_t size)
{
        _cleanup_(close_fdp) int fd = connect_to(fixture->path);

        buffer[0] = '\0';
        send_all(fixture, fd, request, strlen(request));
        receive(fixture, fd, buffer, size, NULL);
}

static void settle(const struct fixture *fixture)
{
        while (sd_event_run(fixture->event, 0) > 0)
                ;
}

struct expectation {
        const char *request;
        const char *status_line;
        const char *contains;
};

static void a_request_has_the_answer_and_the_status_of_its_kind(void **state)
{
        static const struct expectation expectations[] = {
                { "GET /v1/things/web HTTP/1.1\r\n" CLOSE, "HTTP/1.1 200 ", "\r\n\r\n{\"segment\":\"web\",\"after\":null}\n" },
                { "GET /v1/things/a%2Fb%20c?after=7%38&x HTTP/1.1\r\n" CLOSE, "HTTP/1.1 200 ",
                  "{\"segment\":\"a/b c\",\"after\":\"78\"}" },
                { "GET /v1/things/web HTTP/1.1\r\n" CLOSE, "HTTP/1.1 200 ", "Content-Type: application/json" },
                { "POST /v1/things/web/wake HTTP/1.1\r\nContent-Length: 3\r\n" CLOSE "abc", "HTTP/1.1 200 ",
                  "\"segment\":\"web\"" },
                { "GET /healthz HTTP/1.1\r\n" CLOSE, "HTTP/1.1 503 ", "\r\n\r\nnot yet\n" },
                { "HEAD /healthz HTTP/1.1\r\n" CLOSE, "HTTP/1.1 503 ", "Content-Length: 8\r\n" },
                { "GET /v1/nothing HTTP/1.1\r\n" CLOSE, "HTTP/1.1 404 ",
                  "{\"error\":{\"message\":\"there is no /v1/nothing here\"}}" },
                { "GET /v1/things/ HTTP/1.1\r\n" CLOSE, "HTTP/1.1 404 ", "error" },
                { "GET /v1/things/web/ HTTP/1.1\r\n" CLOSE, "HTTP/1.1 404 ", "error" },
                { "DELETE /v1/things/web HTTP/1.1\r\n" CLOSE, "HTTP/1.1 405 ", "does not take the method DELETE" },
                { "GET /v1/things/web/wake HTTP/1.1\r\n" CLOSE, "HTTP/1.1 405 ", "error" },
                { "GET /v1/things/%zz HTTP/1.1\r\n" CLOSE, "HTTP/1.1 400 ", "percent" },
                { "GET /v1/things/a%00b HTTP/1.1\r\n" CLOSE, "HTTP/1.1 400 ", "percent" },
                { "GET /v1/things/a% HTTP/1.1\r\n" CLOSE, "HTTP/1.1 400 ", "percent" },
                { "GET /v1/things/web?after=%1 HTTP/1.1\r\n" CLOSE, "HTTP/1.1 400 ", "query" },
                { "GET /v1/things/web?1&2&3&4&5&6&7&8&9 HTTP/1.1\r\n" CLOSE, "HTTP/1.1 400 ", "query" },
                { "POST /v1/things/web/wake HTTP/1.1\r\nContent-Length: 65537\r\n" CLOSE, "HTTP/1.1 413 ", "65536 bytes" },
                { "GET /v1/broken HTTP/1.1\r\n" CLOSE, "HTTP/1.1 500 ", "out of memory" },
                { "what is this\r\n\r\n", "HTTP/1.1 400 ", "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(expectations); i++) {
                char answer[4096];

                exchange(*state, expectations[i].request, answer, sizeof(answer));
                if (strncmp(answer, expectations[i].status_line, strlen(expectations[i].status_line)) != 0 ||
                    !strstr(answer, expectations[i].contains))
                        fail_msg("%s\nwas answered\n%s", expectations[i].request, answer);
        }
}

static void a_body_of_unknown_length_over_the_limit_is_refused(void **state)
{
        struct fixture *fixture = *state;
        _cleanup_(close_fdp) int fd = connect_to(fixture->path);
        static const char head[] = "POST /v1/things/web/wake HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" CLOSE;
        char chunk[0x4000 + 16], answer[4096] = "";

        memset(chunk, 'x', sizeof(chunk));
        memcpy(chunk, "4000\r\n", 6);
        memcpy(chunk + 6 + 0x4000, "\r\n", 2);
        send_all(fixture, fd, head, strlen(head));
        for (int i = 0; i < 5; i++)
                send_all(fixture, fd, chunk, 6 + 0x4000 + 2);
        send_all(fixture, fd, "0\r\n\r\n", 5);
        receive(fixture, fd, answer, sizeof(answer), NULL);

        assert_int_equal(strncmp(answer, "HTTP/1.1 413 ", 13), 0);
}

static void headers_over_the_limit_are_refused(void **state)
{
        char request[32 * 1024], answer[4096];
        int length = snprintf(request, sizeof(request), "GET /healthz HTTP/1.1\r\nX: ");

        memset(request + length, 'x', 20000);
        strcpy(request + length + 20000, "\r\n" CLOSE);
        exchange(*state, request, answer, sizeof(answer));

        assert_int_equal(strncmp(answer, "HTTP/1.1 431 ", 13), 0);
}

static void the_event_stream_has_what_was_and_what_comes(void **state)
{
        struct fixture *fixture = *state;
        _cleanup_(close_fdp) int fd = connect_to(fixture->path);
        static const char request[] = "GET /v1/stream HTTP/1.1\r\nHost: lulld\r\n\r\n";
        char answer[8192];

        event_log_add(fixture->log, "web", "Woken", "first");
        send_all(fixture, fd, request, strlen(request));
        receive(fixture, fd, answer, sizeof(answer), "\"first\"}\n");
        assert_non_null(strstr(answer, "Content-Type: application/x-ndjson"));

        for (int i = 0; i < 3; i++) {
                settle(fixture);
                event_log_add(fixture->log, "web", "Slept", "later %d", i);
        }
        receive(fixture, fd, answer, sizeof(answer), "\"later 2\"}\n");
        assert_non_null(strstr(answer, "\"later 0\"}\n"));
        assert_non_null(strstr(answer, "\"later 1\"}\n"));
}

static void a_long_event_arrives_whole(void **state)
{
        struct fixture *fixture = *state;
        _cleanup_(close_fdp) int fd = connect_to(fixture->path);
        static const char request[] = "GET /v1/stream HTTP/1.0\r\n\r\n";
        char message[10000] = "", answer[32768];

        memset(message, 'm', sizeof(message) - 1);
        event_log_add(fixture->log, "web", "Woken", "%s", message);
        send_all(fixture, fd, request, strlen(request));
        receive(fixture, fd, answer, sizeof(answer), "\"}\n");

        assert_non_null(strstr(answer, message));
}

static void a_waiting_stream_and_an_unused_server_cost_no_wakeups(void **state)
{
        struct fixture *fixture = *state;
        _cleanup_(close_fdp) int fd = -1;
        static const char request[] = "GET /v1/stream HTTP/1.1\r\nHost: lulld\r\n\r\n";
        char answer[4096];

        settle(fixture);
        assert_int_equal(sd_event_run(fixture->event, 100000), 0);

        fd = connect_to(fixture->path);
        send_all(fixture, fd, request, strlen(request));
        event_log_add(fixture->log, "web", "Woken", "first");
        receive(fixture, fd, answer, sizeof(answer), "\"first\"}\n");
        settle(fixture);
        assert_int_equal(sd_event_run(fixture->event, 200000), 0);
}

static void clients_that_leave_a_stream_make_room_for_others(void **state)
{
        struct fixture *fixture = *state;
        static const char request[] = "GET /v1/stream HTTP/1.1\r\nHost: lulld\r\n\r\n";
        char answer[4096];
        int fds[17];

        event_log_add(fixture->log, "web", "Woken", "first");
        for (int i = 0; i < 16; i++) {
                fds[i] = connect_to(fixture->path);
                send_all(fixture, fds[i], request, strlen(request));
                receive(fixture, fds[i], answer, sizeof(answer), "\"first\"}\n");
        }
        exchange(fixture, "GET /v1/stream HTTP/1.1\r\n" CLOSE, answer, sizeof(answer));
        assert_int_equal(strncmp(answer, "HTTP/1.1 503 ", 13), 0);

        close(fds[0]); /* nothing happens in the log: only its leaving can be noticed */
        settle(fixture);
        fds[0] = connect_to(fixture->path);
        send_all(fixture, fds[0], request, strlen(request));
        receive(fixture, fds[0], answer, sizeof(answer), "\"first\"}\n");
        assert_int_equal(strncmp(answer, "HTTP/1.1 200 ", 13), 0);
        for (int i = 0; i < 16; i++)
                close(fds[i]);
}

static void the_sixty_fifth_connection_waits_without_a_busy_loop(void **state)
{
        struct fixture *fixture = *state;
        char answer[4096];
        int fds[65];

        for (int i = 0; i < 65; i++) {
                fds[i] = connect_to(fixture->path);
                settle(fixture);
        }
        send_all(fixture, fds[64], "GET /healthz HTTP/1.1\r\n" CLOSE, strlen("GET /healthz HTTP/1.1\r\n" CLOSE));
        settle(fixture);
        assert_int_equal(sd_event_run(fixture->event, 100000), 0);
        assert_int_equal(recv(fds[64], answer, sizeof(answer), 0), -1);

        close(fds[0]);
        receive(fixture, fds[64], answer, sizeof(answer), "not yet");
        for (int i = 1; i < 65; i++)
                close(fds[i]);
}

static void only_its_owner_may_use_the_socket(void **state)
{
        struct fixture *fixture = *state;
        struct stat status;

        assert_int_equal(stat(fixture->path, &status), 0);
        assert_int_equal(status.st_mode & 07777, 0600);
}

static void a_live_socket_is_respected_a_stale_one_replaced_a_file_left_alone(void **state)
{
        struct fixture *fixture = *state;
        char path[64];
        int fd = -1;

        assert_int_equal(http_listen_unix(fixture->path, &fd), -EADDRINUSE);
        fixture->server = http_server_free(fixture->server);
        assert_int_equal(http_listen_unix(fixture->path, &fd), 0);
        close(fd);

        snprintf(path, sizeof(path), "%s/file", fixture->directory);
        fclose(fopen(path, "we"));
        assert_int_equal(http_listen_unix(path, &fd), -EEXIST);
        assert_int_equal(access(path, F_OK), 0);
        unlink(path);

        fd = -1;
        assert_int_equal(http_listen_unix("/tmp/0123456789012345678901234567890123456789012345678901234567890123456789"
                                          "0123456789012345678901234567890123456789",
                                          &fd),
                         -ENAMETOOLONG);
        assert_int_equal(fd, -1);
}

static void a_tcp_address_needs_an_address_and_a_port(void **state)
{
        static const char *const wrong[] = {
                "", "127.0.0.1", "9474", "localhost:9474", "127.0.0.1:0", "127.0.0.1:65536", "::1:9474"
        };
        int fd = -1;

        for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
                assert_int_equal(http_listen_tcp(wrong[i], &fd), -EINVAL);
        assert_int_equal(fd, -1);
}

/* A port that the kernel thinks free, twice. */
static void the_server_works_over_tcp_in_both_families(void **state)
{
        static const char *const addresses[] = { "127.0.0.1", "[::1]" };
        struct fixture *fixture = *state;

        for (size_t i = 0; i < ELEMENTSOF(addresses); i++) {
                _cleanup_(http_server_freep) struct http_server *server = NULL;
                _cleanup_(close_fdp) int client = -1;
                struct sockaddr_storage address;
                socklen_t length = sizeof(address);
                static const char request[] = "GET /healthz HTTP/1.1\r\n" CLOSE;
                char text[64], answer[4096];
                int fd = -1, r = -EADDRINUSE;

                for (int port = 39474; r == -EADDRINUSE && port < 39574; port++) {
                        snprintf(text, sizeof(text), "%s:%d", addresses[i], port);
                        r = http_listen_tcp(text, &fd);
                }
                assert_int_equal(r, 0);
                assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
                assert_int_equal(http_server_new(fixture->event, fd, routes, fixture, &server), 0);

                client = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
                assert_int_equal(connect(client, (struct sockaddr *)&address, length), 0);
                assert_int_equal(send(client, request, strlen(request), 0), (ssize_t)strlen(request));
                settle(fixture);
                assert_true(recv(client, answer, sizeof(answer) - 1, 0) > 0);
                assert_int_equal(strncmp(answer, "HTTP/1.1 503 ", 13), 0);
        }
}

static void percent_signs_are_decoded_strictly(void **state)
{
        static const struct {
                const char *text, *decoded; /* NULL: refused */
        } cases[] = {
                { "", "" },      { "a%20b", "a b" }, { "%C3%a9", "\xc3\xa9" }, { "%", NULL },    { "%2", NULL },
                { "%g0", NULL }, { "%0g", NULL },    { "%00", NULL },          { "a+b", "a+b" }, { "%252f", "%2f" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char text[32];

                strcpy(text, cases[i].text);
                assert_int_equal(http_percent_decode(text), cases[i].decoded ? 0 : -EINVAL);
                if (cases[i].decoded)
                        assert_string_equal(text, cases[i].decoded);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_request_has_the_answer_and_the_status_of_its_kind, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_body_of_unknown_length_over_the_limit_is_refused, set_up, tear_down),
                cmocka_unit_test_setup_teardown(headers_over_the_limit_are_refused, set_up, tear_down),
                cmocka_unit_test_setup_teardown(the_event_stream_has_what_was_and_what_comes, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_long_event_arrives_whole, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_waiting_stream_and_an_unused_server_cost_no_wakeups, set_up, tear_down),
                cmocka_unit_test_setup_teardown(clients_that_leave_a_stream_make_room_for_others, set_up, tear_down),
                cmocka_unit_test_setup_teardown(the_sixty_fifth_connection_waits_without_a_busy_loop, set_up, tear_down),
                cmocka_unit_test_setup_teardown(only_its_owner_may_use_the_socket, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_live_socket_is_respected_a_stale_one_replaced_a_file_left_alone, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(the_server_works_over_tcp_in_both_families, set_up, tear_down),
                cmocka_unit_test(a_tcp_address_needs_an_address_and_a_port),
                cmocka_unit_test(percent_signs_are_decoded_strictly),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
