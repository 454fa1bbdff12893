# SPDX-License-Identifier: Apache-2.0
"""A server on PORT that answers each line: "ping" at once; "hold" when another connection says "release"; "end" closes; "late" after a
SIGUSR1, to a client that cannot be reached any more, and gives up soon. Given a second argument it only listens, and accepts nothing."""
import signal
import socket
import sys
import threading

released, unreachable = threading.Event(), threading.Event()
signal.signal(signal.SIGUSR1, lambda *_: unreachable.set())


def serve(connection):
    with connection:
        for line in connection.makefile():
            if line == "hold\n":
                released.wait()
            if line == "release\n":
                released.set()
            if line == "late\n":
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 300)
                unreachable.wait()
            if line == "end\n":
                return
            connection.sendall(b"ok\n")


listener = socket.create_server(("::", int(sys.argv[1])), family=socket.AF_INET6, dualstack_ipv6=True)
print("ready", flush=True)
if len(sys.argv) > 2:
    threading.Event().wait()
while True:
    threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()
