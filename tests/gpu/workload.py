#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A server that has a GPU: opens the device, and submits some work for each connection.

    workload.py PORT DEVICE [LIBRARY [wait]]

Without a LIBRARY it goes around the driver library; with wait it then stays in a synchronisation for good. Commands on stdin, if there are
any, submit more: a number a line, answered by a line.
"""
import ctypes
import os
import socket
import sys
import threading

port, device, rest = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
held = os.open(device, os.O_RDONLY)
driver = ctypes.CDLL(rest[0]) if rest else None
if driver:
    driver.cuInit(0)


def work():
    if not driver:
        return
    for _ in range(10):
        driver.cuLaunchKernel(0)
    if "wait" in rest:
        end, _ = os.pipe()
        threading.Thread(target=driver.cuStreamSynchronize, args=(end,), daemon=True).start()


listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True) if port else None
print("ready", flush=True)
if not port:
    for line in sys.stdin:
        for _ in range(int(line)):
            driver.cuLaunchKernel(0)
        print("done", flush=True)
    sys.exit()
while True:
    connection, _ = listener.accept()
    connection.recv(100)
    work()
    connection.sendall(b"answer")
    connection.close()
