# SPDX-License-Identifier: Apache-2.0
"""SYNs without a socket behind them: repeated at will, or by the ten thousand. IPv4 only."""
import select
import socket
import struct
import time

TCP_SYN, TCP_RESET = 0x02, 0x04


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def syn(source, destination, source_port, port, sequence=1000):
    """A TCP header without options, as it goes into a raw socket."""
    header = struct.pack("!HHIIBBHHH", source_port, port, sequence, 0, 5 << 4, TCP_SYN, 65535, 0, 0)
    pseudo = socket.inet_aton(source) + socket.inet_aton(destination) + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(header))
    return header[:16] + struct.pack("!H", checksum(pseudo + header)) + header[18:]


class RawClient:
    def __init__(self, client, source_port=40000):
        self.client = client
        self.source_port = source_port
        self.address = client.addresses[4]
        self.socket = client.namespace.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
        client.opened.callback(self.socket.close)
        self.socket.connect((self.address, 0))
        self.source = self.socket.getsockname()[0]

    def send_syn(self, port, source_port=None):
        self.socket.send(syn(self.source, self.address, source_port or self.source_port, port))

    def await_reset(self, timeout):
        """Whether a reset for this client's port comes in time."""
        deadline = time.monotonic() + timeout
        poller = select.poll()
        poller.register(self.socket, select.POLLIN)
        while (left := deadline - time.monotonic()) > 0:
            if not poller.poll(left * 1000):
                break
            packet = self.socket.recv(65536)
            tcp = packet[(packet[0] & 0x0F) * 4:]
            if struct.unpack_from("!H", tcp, 2)[0] == self.source_port and tcp[13] & TCP_RESET:
                return True
        return False

    def flood(self, port, count, first_source_port=10000):
        """As fast as one CPU can, each from another port."""
        packets = [syn(self.source, self.address, first_source_port + i % 50000, port) for i in range(min(count, 50000))]
        for i in range(count):
            self.socket.send(packets[i % len(packets)])
