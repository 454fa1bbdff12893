# SPDX-License-Identifier: Apache-2.0
"""A TLS server that speaks HTTP/2 only, and answers as a test says."""
import contextlib
import json
import socket
import ssl
import threading

import h2.config
import h2.connection
import h2.events
import h2.exceptions


class Stream:
    """One request. Its answer may be given at once, bit by bit, or never."""

    def __init__(self, connection, number, headers):
        self.connection, self.number = connection, number
        self.headers = dict(headers)
        self.method, self.target = self.headers[":method"], self.headers[":path"]

    def begin(self, status=200):
        with self.connection.lock:
            self.connection.state.send_headers(self.number, [(":status", str(status)), ("content-type", "application/json")])
            self.connection.flush()

    def data(self, data, end=False):
        with self.connection.lock:
            self.connection.state.send_data(self.number, data, end_stream=end)
            self.connection.flush()

    def event(self, kind, item):
        self.data(json.dumps({"type": kind, "object": item}).encode() + b"\n")

    def initial(self, version):
        self.begin()
        annotations = {"k8s.io/initial-events-end": "true"}
        self.event("BOOKMARK", {"metadata": {"resourceVersion": str(version), "annotations": annotations}})

    def answer(self, status, document):
        self.begin(status)
        self.data(json.dumps(document).encode(), end=True)

    def reset(self, code=2):
        with self.connection.lock:
            self.connection.state.reset_stream(self.number, error_code=code)
            self.connection.flush()


class Connection:
    def __init__(self, server, plain):
        self.server, self.plain, self.lock = server, plain, threading.RLock()
        self.streams = []

    def serve(self):
        self.socket = self.server.context.wrap_socket(self.plain, server_side=True)
        assert self.socket.selected_alpn_protocol() == "h2"
        self.state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        with self.lock:
            self.state.initiate_connection()
            self.flush()
        while data := self.socket.recv(65536):
            with self.lock:
                events = self.state.receive_data(data)
                self.flush()
            for event in events:
                if isinstance(event, h2.events.RequestReceived):
                    self.request(event)
                if isinstance(event, h2.events.DataReceived):
                    self.state.acknowledge_received_data(event.flow_controlled_length, event.stream_id)

    def request(self, event):
        stream = Stream(self, event.stream_id, event.headers)
        self.streams.append(stream)
        self.server.received(stream)

    def flush(self):
        self.socket.sendall(self.state.data_to_send())

    def goaway(self):
        with self.lock:
            self.state.close_connection()
            self.flush()

    def close(self):
        with contextlib.suppress(OSError):
            self.plain.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


class H2Server:
    """Watches of /things take the next step of the script; other requests go to `other`."""

    def __init__(self, authority, address="127.0.0.1"):
        self.address, self.connections, self.changed = address, [], threading.Condition()
        self.script, self.requests = [], []
        self.other = lambda stream: stream.answer(200, {"done": True})
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*authority.issue("h2", address=address))
        self.context.set_alpn_protocols(["h2"])
        self.listener = socket.create_server((address, 0))
        self.url = f"https://{address}:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection = Connection(self, self.listener.accept()[0])
                self.connections.append(connection)
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    @staticmethod
    def serve(connection):
        with contextlib.suppress(OSError, ValueError, h2.exceptions.ProtocolError):  # after "go away", h2 knows nothing any more
            connection.serve()

    def received(self, stream):
        step = self.other
        with self.changed:
            if stream.target.startswith("/things"):
                self.requests.append(stream)
                step = self.script[0]
                if len(self.script) > 1:
                    self.script.pop(0)
            self.changed.notify_all()
        step(stream)

    def await_requests(self, count, seconds=30):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.requests) >= count, seconds), f"{len(self.requests)} requests"
            return self.requests[count - 1]

    def close(self):
        self.listener.close()
        for connection in self.connections:
            connection.close()
