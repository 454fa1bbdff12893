# SPDX-License-Identifier: Apache-2.0
"""An API server that is cut off, resets, is slow, or answers what it never would by itself.

Each fault concerns only clients from the given sources: addresses or ranges of nodes, of pods, or of the client machine.
"""
import json
import socket
import subprocess

from . import layout

TABLE = "inet lull_faults"


def by_family(sources):
    """Yields ("ip", "a, b") and ("ip6", …) for the families that occur."""
    for family, wanted in (("ip", False), ("ip6", True)):
        chosen = [source for source in sources if (":" in source) == wanted]
        if chosen:
            yield family, ", ".join(chosen)


class Faults:
    """Rules in the fabric's nftables, and the front that front.py is."""

    def __init__(self, cluster):
        self.cluster = cluster

    def nft(self, *lines):
        self.cluster.control_plane.run("nft", "-f", "-", input="\n".join(lines) + "\n")

    def table(self):
        """Anew: a table that is there is removed with its rules."""
        return [f"table {TABLE}", f"delete table {TABLE}", f"table {TABLE} {{",
                "  chain input { type filter hook input priority -10; }",
                "  chain output { type filter hook output priority -10; }",
                "  chain divert { type nat hook prerouting priority -110; }", "}"]

    def cut_off(self, *sources):
        """Packets both ways vanish: connections stay half open, and nobody is told."""
        port = layout.API_PORT
        rules = self.table()
        for family, listed in by_family(sources):
            rules += [f"add rule {TABLE} input {family} saddr {{ {listed} }} tcp dport {port} drop",
                      f"add rule {TABLE} output {family} daddr {{ {listed} }} tcp sport {port} drop"]
        self.nft(*rules)

    def refuse(self, *sources):
        """Connections are reset, and new ones refused."""
        rules = self.table()
        for family, listed in by_family(sources):
            rules.append(f"add rule {TABLE} input {family} saddr {{ {listed} }} tcp dport {layout.API_PORT} "
                         "reject with tcp reset")
        self.nft(*rules)

    def divert(self, *sources):
        """New connections end at the front instead; those there were are reset by the first packet they send. Clients that take
        an address can also be given the front's own: Faults.front_address."""
        rules = self.table()
        for family, listed in by_family(sources):
            rules += [f"add rule {TABLE} divert {family} saddr {{ {listed} }} tcp dport {layout.API_PORT} "
                      f"redirect to :{layout.FRONT_PORT}",
                      f"add rule {TABLE} input {family} saddr {{ {listed} }} tcp dport {layout.API_PORT} "
                      "reject with tcp reset"]
        self.nft(*rules)

    front_address = (layout.CONTROL_PLANE[0], layout.FRONT_PORT)

    def front(self, **told):
        """Tells the front how to behave (see front.py), by default well; returns what it counted so far."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(self.cluster.where.directory / "front.sock"))
            connection.sendall(json.dumps(told).encode() + b"\n")
            return json.loads(connection.makefile().readline())

    def answer(self, code, match=".", headers=None, body="", times=None):
        """The front answers requests whose "METHOD PATH" matches, as often as said, else until mend()."""
        rule = {"match": match, "code": code, "headers": headers or {}, "body": body}
        self.front(rules=[rule if times is None else {**rule, "times": times}])

    def too_many_requests(self, retry_after, match=".", times=None):
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "TooManyRequests", "code": 429,
                  "message": "scripted by a test"}
        self.answer(429, match, {"Retry-After": str(retry_after)}, json.dumps(status), times)

    def slow(self, seconds):
        """The front keeps each piece so long, both ways."""
        self.front(delay=seconds)

    def mend(self):
        """Everything as it was."""
        self.nft(f"table {TABLE}", f"delete table {TABLE}")
        try:
            self.front()
        except OSError as error:
            if self.cluster.control.status().get("front", {}).get("pid"):
                raise subprocess.SubprocessError("the front does not answer, see log/front.log") from error
