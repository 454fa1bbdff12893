# SPDX-License-Identifier: Apache-2.0
"""A TLS server that answers as a test says: what a real API server cannot be made to do."""
import contextlib
import json
import socket
import ssl
import struct
import threading
import time
import urllib.parse


class Gone(Exception):
    """The client has left, or the test is over."""


class Exchange:
    """One request, and the means to answer it."""

    def __init__(self, server, connection, method, target, headers, body):
        self.server, self.connection = server, connection
        self.method, self.headers, self.body = method, headers, body
        self.path, _, query = target.partition("?")
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        self.at = time.monotonic()
        self.keep = True

    @property
    def is_watch(self):
        return self.query.get("watch") == "true"

    def raw(self, data):
        try:
            self.connection.sendall(data)
        except OSError as error:
            raise Gone from error

    def begin(self, status=200, headers=()):
        lines = [f"HTTP/1.1 {status} Said", "Content-Type: application/json", "Transfer-Encoding: chunked",
                 *(f"{name}: {value}" for name, value in headers)]
        self.raw(("\r\n".join(lines) + "\r\n\r\n").encode())

    def chunk(self, data):
        self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self):
        self.raw(b"0\r\n\r\n")

    def answer(self, status, document, headers=()):
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        lines = [f"HTTP/1.1 {status} Said", "Content-Type: application/json", f"Content-Length: {len(data)}",
                 *(f"{name}: {value}" for name, value in headers)]
        self.raw(("\r\n".join(lines) + "\r\n\r\n").encode() + data)

    def refuse(self, code, reason="", *, retry_after=None, causes=(), message="said no"):
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message,
                  "details": {"causes": [{"reason": cause} for cause in causes]}}
        self.answer(code, status, [("Retry-After", retry_after)] if retry_after is not None else [])

    def list(self, items, version, continue_token=None):
        metadata = {"resourceVersion": str(version), **({"continue": continue_token} if continue_token else {})}
        self.answer(200, {"kind": "ThingList", "apiVersion": "v1", "metadata": metadata, "items": items})

    def event(self, kind, item):
        self.chunk(json.dumps({"type": kind, "object": item}).encode() + b"\n")

    def bookmark(self, version, initial_end=False):
        annotations = {"annotations": {"k8s.io/initial-events-end": "true"}} if initial_end else {}
        self.event("BOOKMARK", {"kind": "Thing", "metadata": {"resourceVersion": str(version), **annotations}})

    def error(self, code, reason, causes=()):
        self.event("ERROR", {"kind": "Status", "code": code, "reason": reason, "message": "in the stream",
                             "details": {"causes": [{"reason": cause} for cause in causes]}})

    def initial(self, items, version):
        """A watch list up to its bookmark."""
        self.begin()
        for item in items:
            self.event("ADDED", item)
        self.bookmark(version, initial_end=True)

    def hold(self):
        """Keeps the answer open until the client or the test goes."""
        self.server.closing.wait()
        raise Gone

    def cut(self):
        """Ends the connection without ending the answer."""
        raise Gone

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Gone


def thing(name, version, namespace="default", **more):
    return {"kind": "Thing", "metadata": {"name": name, "namespace": namespace, "resourceVersion": str(version)}, **more}


class ApiServer:
    """Each request to /things takes the next step of the script, a function of an Exchange; the last one stays. Others go to
    `other`. Steps run in a thread of their connection."""

    def __init__(self, authority, address="127.0.0.1", *, port=0, client_authority=None):
        self.authority, self.address = authority, address
        self.closing = threading.Event()
        self.changed = threading.Condition()
        self.script, self.requests, self.problems, self.connections = [], [], [], set()
        self.other = lambda exchange: exchange.answer(404, {})
        self.client_authority = client_authority
        self.context = self._context()
        self.listener = socket.create_server((address, port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _context(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.authority.issue("server", address=self.address))
        if self.client_authority:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.client_authority.path)
        return context

    @property
    def url(self):
        return f"https://{self.address}:{self.port}"

    def certify_anew(self, authority):
        """The next connections see a certificate of another authority; the open ones are ended."""
        self.authority = authority
        self.context = self._context()
        self.drop_connections()

    def drop_connections(self):
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, plain):
        with contextlib.suppress(OSError, Gone, ValueError):
            connection = self.context.wrap_socket(plain, server_side=True)
            self.connections.add(connection)
            try:
                reader = connection.makefile("rb")
                while exchange := self._read(connection, reader):
                    self._step(exchange)
            finally:
                self.connections.discard(connection)
                connection.close()
        plain.close()

    def _read(self, connection, reader):
        first = reader.readline().decode().split()
        if len(first) != 3:
            return None
        headers = {}
        while line := reader.readline().decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = reader.read(int(headers.get("content-length", 0)))
        return Exchange(self, connection, first[0], first[1], headers, body)

    def _step(self, exchange):
        if exchange.path != "/things":
            self.other(exchange)
            return
        with self.changed:
            self.requests.append(exchange)
            step = self.script[0]
            if len(self.script) > 1:
                self.script.pop(0)
            self.changed.notify_all()
        try:
            step(exchange)
        except (Gone, OSError):
            raise
        except Exception as problem:
            self.problems.append(problem)
            raise

    def await_requests(self, count, seconds=30):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.requests) >= count, seconds), f"{len(self.requests)} requests"
            return self.requests[count - 1]

    def close(self):
        self.closing.set()
        self.listener.close()
        self.drop_connections()
        assert not self.problems, self.problems
