# SPDX-License-Identifier: Apache-2.0
"""A server on PORT that answers each line: "ping" at once; "hold" when another connection says "release"; "end" closes; "late"
when nobody can be reached any more, and gives up soon. Given a second argument it only listens, and accepts nothing."""
import socket
import sys
import threading
import time

released = threading.Event()


def serve(connection):
    with connection:
        for line in connection.makefile():
            if line == "hold\n":
                released.wait()
            if line == "release\n":
                released.set()
            if line == "late\n":
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 300)
                time.sleep(1)
            if line == "end\n":
                return
            connection.sendall(b"ok\n")


listener = socket.create_server(("::", int(sys.argv[1])), family=socket.AF_INET6, dualstack_ipv6=True)
print("ready", flush=True)
if len(sys.argv) > 2:
    threading.Event().wait()
while True:
    threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()
