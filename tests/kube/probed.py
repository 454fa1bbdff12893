# SPDX-License-Identifier: Apache-2.0
"""Applications as a readiness probe meets them, and the program tests/kube/probe, which meets them."""
import contextlib
import json
import queue
import socket
import ssl
import threading
import time

from speaker import Speaker

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


def redirect(location, status=302):
    return f"HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()


def free_port(address="127.0.0.1"):
    """One that refuses."""
    with socket.create_server((address, 0), family=family(address)) as listener:
        return listener.getsockname()[1]


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


class App:
    """Answers the n-th connection as the n-th item of @answers says, and all later ones as the last: bytes, or a function of the
    connection. `requests` are the heads of the requests, `ends` says how clients ended their connections."""

    def __init__(self, *answers, address="127.0.0.1", port=0, certificate=None, backlog=128):
        self.answers, self.requests, self.times, self.ends = list(answers), [], [], queue.Queue()
        self.context, self.changed = None, threading.Condition()
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*certificate)
        self.address = address
        self.listener = socket.create_server((address, port), family=family(address), backlog=backlog)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection = self.listener.accept()[0]
                with self.changed:
                    self.times.append(time.monotonic())
                    self.changed.notify_all()
                answer = self.answers[min(len(self.times), len(self.answers)) - 1]
                threading.Thread(target=self._serve, args=(connection, answer), daemon=True).start()

    def _serve(self, plain, answer):
        with contextlib.suppress(OSError, ssl.SSLError), plain:
            connection = self.context.wrap_socket(plain, server_side=True) if self.context else plain
            with connection:
                if head := self._head(connection):
                    self.requests.append(head.decode())
                    answer(connection) if callable(answer) else connection.sendall(answer)
                    self._end(connection)

    def _head(self, connection):
        head = b""
        while b"\r\n\r\n" not in head:
            if not (data := connection.recv(65536)):
                self.ends.put("end")
                return None
            head += data
        return head

    def _end(self, connection):
        try:
            self.ends.put("data" if connection.recv(1) else "end")
        except OSError as error:
            self.ends.put(str(error))

    def connection_times(self, count, seconds=20):
        """When the first @count connections came."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.times) >= count, seconds), f"{len(self.times)} connections"
            return self.times[:count]

    def close(self):
        self.listener.close()


class Prober(Speaker):
    """@prefix: a command that runs it somewhere else. Its `began` is what "seconds" count from, on time.monotonic()'s clock."""

    def __init__(self, tool, prefix=(), **settings):
        super().__init__([*prefix, tool, json.dumps(settings)], end={"event": "ended"})
        self.began = self.next("began")["at"]

    def next(self, event="passed", seconds=20):
        line = self.lines.get(timeout=seconds)
        assert line["event"] == event, line
        return line

    def state(self):
        self.tell("state")
        return self.next("state")

    def until_attempts(self, count, seconds=20):
        deadline = time.monotonic() + seconds
        while (state := self.state())["attempts"] < count:
            assert time.monotonic() < deadline, state
            time.sleep(0.01)
        return state
