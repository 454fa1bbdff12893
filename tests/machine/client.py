# SPDX-License-Identifier: Apache-2.0
"""What clients see: how long a connect took, how often its SYN had to be repeated, and with which error it ended."""
import contextlib
import dataclasses
import errno
import os
import select
import socket
import struct
import time

TCP_INFO_TOTAL_RETRANS = 100  # offset of tcpi_total_retrans, linux/tcp.h


@dataclasses.dataclass
class Attempt:
    """One TCP connect, under way or ended."""
    socket: socket.socket
    began: float
    error: int = errno.EINPROGRESS
    seconds: float = 0.0

    @property
    def under_way(self):
        return self.error == errno.EINPROGRESS

    @property
    def connected(self):
        return self.error == 0

    @property
    def retransmissions(self):
        info = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_TOTAL_RETRANS + 4)
        return struct.unpack_from("I", info, TCP_INFO_TOTAL_RETRANS)[0]

    def end(self):
        self.error = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        self.seconds = time.monotonic() - self.began

    def ask(self, request=b"hello\n", timeout=10):
        """Sends a request and returns the answer's first part; b"" when the server hung up."""
        self.socket.settimeout(timeout)
        self.socket.sendall(request)
        return self.socket.recv(65536)

    def receive(self, timeout=10):
        self.socket.settimeout(timeout)
        return self.socket.recv(65536)

    def close(self):
        self.socket.close()

    def __str__(self):
        how = "under way" if self.under_way else os.strerror(self.error)
        return f"{how} after {self.seconds:.3f} s, {self.retransmissions} retransmissions"


def finish(attempts, timeout):
    """Waits until all have ended. What has not by then stays under way."""
    deadline = time.monotonic() + timeout
    poller = select.poll()
    open_by_fd = {attempt.socket.fileno(): attempt for attempt in attempts if attempt.under_way}
    for fd in open_by_fd:
        poller.register(fd, select.POLLOUT)
    while open_by_fd and (left := deadline - time.monotonic()) > 0:
        for fd, _ in poller.poll(left * 1000):
            open_by_fd.pop(fd).end()
            poller.unregister(fd)
    return attempts


class Client:
    """A place to call from, and the addresses at which it finds the node. All it opened ends with it."""

    def __init__(self, namespace, addresses):
        self.namespace = namespace
        self.addresses = addresses
        self.opened = contextlib.ExitStack()

    def socket(self, kind, family=4, source=None, options=()):
        sock = self.namespace.socket(socket.AF_INET if family == 4 else socket.AF_INET6, kind)
        self.opened.callback(sock.close)
        for option in options:
            sock.setsockopt(*option)
        if source:
            sock.bind(source if isinstance(source, tuple) else (source, 0))
        return sock

    def begin(self, port, family=4, source=None, options=()):
        """A connect that goes on by itself; see finish()."""
        sock = self.socket(socket.SOCK_STREAM, family, source, options)
        sock.setblocking(False)
        attempt = Attempt(sock, time.monotonic())
        result = sock.connect_ex((self.addresses[family], port))
        if result not in (0, errno.EINPROGRESS):
            attempt.error = result
        return attempt

    def connect(self, port, family=4, timeout=15, **options):
        return finish([self.begin(port, family, **options)], timeout)[0]

    def connect_many(self, count, port, family=4, timeout=30):
        return finish([self.begin(port, family) for _ in range(count)], timeout)

    def udp(self, port, family=4, source=None, options=()):
        """A UDP socket connected to the node."""
        sock = self.socket(socket.SOCK_DGRAM, family, source, options)
        sock.connect((self.addresses[family], port))
        sock.settimeout(15)
        return sock

    def close(self):
        self.opened.close()
