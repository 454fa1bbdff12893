# SPDX-License-Identifier: Apache-2.0
"""A front before the API server that misbehaves as told: passes on, slowly or not at all, or answers in its place.

    python3 -m lullcluster.front NAME

It listens beside the API server, on port 6444 of the fabric. As long as no rule is set it passes bytes on and knows nothing of
TLS. With rules it ends TLS itself, speaks HTTP/1.1, and looks at each request: one that a rule matches it answers, the others
it passes on in their sender's name.

Told by JSON lines on DIRECTORY/front.sock: {"delay": seconds per piece, "hold": true: pass nothing on, "refuse": true: do not
listen, "rules": [{"match": regular expression for "METHOD PATH", "code": 429, "headers": {}, "body": "", "times": 3}]}. What is
not named is as at the start. Changing between rules and no rules resets the connections; delay and hold apply to all at once.
The answer counts: {"connections": N, "passed": requests, "answered": requests}; requests are seen only with rules.
"""
import asyncio
import contextlib
import json
import re
import socket
import ssl
import struct
import sys

from . import layout

PIECE = 65536


class Front:
    """The listener, its connections and what it was told."""

    def __init__(self, where):
        self.where = where
        self.told = {}
        self.rules = []
        self.counts = {"connections": 0, "passed": 0, "answered": 0}
        self.writers = set()
        self.going = asyncio.Event()
        self.server = None
        pki = where.certificates
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")
        self.tls.load_verify_locations(pki / "ca.crt")
        self.tls.verify_mode = ssl.CERT_OPTIONAL
        self.tls.set_alpn_protocols(["http/1.1"])
        self.upstream_tls = ssl.create_default_context(cafile=pki / "ca.crt")
        self.upstream_tls.load_cert_chain(pki / "front-proxy.crt", pki / "front-proxy.key")

    async def tell(self, told):
        terminated = bool(self.rules)
        self.told = told
        self.rules = [dict(rule) for rule in told.get("rules", ())]
        self.going.clear() if told.get("hold") else self.going.set()
        if self.server and (told.get("refuse") or terminated != bool(self.rules)):
            await self.stop()
        if not self.server and not told.get("refuse"):
            await self.listen()
        return self.counts

    async def listen(self):
        self.server = await asyncio.start_server(
            self.terminate if self.rules else self.relay, layout.CONTROL_PLANE[0], layout.FRONT_PORT,
            ssl=self.tls if self.rules else None, limit=1 << 20)

    async def stop(self):
        self.server.close()
        for writer in list(self.writers):
            reset(writer)
        self.server = None

    async def upstream(self, tls):
        return await asyncio.open_connection(layout.CONTROL_PLANE[0], layout.API_PORT, ssl=tls, limit=1 << 20)

    @contextlib.contextmanager
    def known(self, *writers):
        """Connections that a reset is to reach."""
        self.writers.update(writers)
        try:
            yield
        finally:
            self.writers.difference_update(writers)
            for writer in writers:
                writer.close()

    async def pump(self, reader, writer):
        """Passes pieces on, as slowly as told."""
        with contextlib.suppress(OSError):
            while piece := await reader.read(PIECE):
                await self.going.wait()
                if delay := self.told.get("delay"):
                    await asyncio.sleep(delay)
                writer.write(piece)
                await writer.drain()
        writer.close()

    async def relay(self, reader, writer):
        self.counts["connections"] += 1
        try:
            up_reader, up_writer = await self.upstream(None)
        except OSError:
            reset(writer)
            return
        with self.known(writer, up_writer):
            await asyncio.gather(self.pump(reader, up_writer), self.pump(up_reader, writer))

    async def terminate(self, reader, writer):
        self.counts["connections"] += 1
        back = up_writer = None
        with self.known(writer), contextlib.suppress(OSError, asyncio.IncompleteReadError):
            try:
                while True:
                    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                    body = await reader.readexactly(content_length(head))
                    await self.going.wait()
                    if delay := self.told.get("delay"):
                        await asyncio.sleep(delay)
                    if rule := self.rule_for(head):
                        await self.answer(writer, rule)
                        continue
                    if not up_writer:
                        up_reader, up_writer = await self.upstream(self.upstream_tls)
                        back = asyncio.create_task(self.pump(up_reader, writer))
                    self.counts["passed"] += 1
                    up_writer.write(self.in_name_of(writer, head).encode("latin-1") + body)
            finally:
                if up_writer:
                    up_writer.close()
                    back.cancel()

    def rule_for(self, head):
        request = " ".join(head.split(" ", 2)[:2])
        for rule in self.rules:
            if re.search(rule["match"], request) and rule.get("times") != 0:
                if "times" in rule:
                    rule["times"] -= 1
                return rule
        return None

    async def answer(self, writer, rule):
        self.counts["answered"] += 1
        body = rule.get("body", "").encode()
        headers = {"Content-Type": "application/json", **rule.get("headers", {}), "Content-Length": len(body)}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {rule['code']} Scripted\r\n{lines}\r\n".encode() + body)
        await writer.drain()

    @staticmethod
    def in_name_of(writer, head):
        """As an authenticating proxy says it; a bearer token passes as it is."""
        first, _, rest = head.partition("\r\n")
        rest = re.sub(r"(?im)^x-remote-[^\r]*\r\n", "", rest)
        certificate = writer.get_extra_info("peercert")
        if not certificate:
            return f"{first}\r\n{rest}"
        names = [pair for part in certificate["subject"] for pair in part]
        lines = "".join(f"X-Remote-User: {value}\r\n" for kind, value in names if kind == "commonName")
        lines += "".join(f"X-Remote-Group: {value}\r\n" for kind, value in names if kind == "organizationName")
        return f"{first}\r\n{lines}X-Remote-Group: system:authenticated\r\n{rest}"

    async def converse(self, reader, writer):
        while line := await reader.readline():
            writer.write(json.dumps(await self.tell(json.loads(line))).encode() + b"\n")
        writer.close()

    async def run(self):
        path = self.where.directory / "front.sock"
        path.unlink(missing_ok=True)
        await self.tell({})
        async with await asyncio.start_unix_server(self.converse, path) as server:
            await server.serve_forever()


def content_length(head):
    found = re.search(r"(?im)^content-length: *(\d+)", head)
    return int(found[1]) if found else 0


def reset(writer):
    """A reset, as of a server that died, not an orderly end."""
    if raw := writer.get_extra_info("socket"):
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def main():
    await Front(layout.Layout(sys.argv[1])).run()


if __name__ == "__main__":
    asyncio.run(main())
