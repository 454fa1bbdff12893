# SPDX-License-Identifier: Apache-2.0
"""Clients that keep one connection. Each has request(path), which returns once answered, and close()."""
import http.client
import socket
import ssl

import h2.config
import h2.connection
import h2.events


def tls_context(version=None, alpn=()):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if version:
        context.minimum_version = context.maximum_version = version
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context


class Http1:
    def __init__(self, port, context=None):
        if context:
            self.connection = http.client.HTTPSConnection("localhost", port, context=context)
        else:
            self.connection = http.client.HTTPConnection("localhost", port)
        self.connection.connect()

    def request(self, path):
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        answer.read()
        assert answer.status == 200

    def close(self):
        self.connection.close()


class Http2:
    """Speaks through a Python h2 state machine; ping() as long-lived clients do."""

    def __init__(self, port, context=None):
        self.socket = socket.create_connection(("localhost", port))
        if context:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
            assert self.socket.selected_alpn_protocol() == "h2"
        self.state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.state.initiate_connection()
        self.flush()

    def flush(self):
        self.socket.sendall(self.state.data_to_send())

    def until(self, kind):
        while True:
            data = self.socket.recv(65536)
            assert data
            events = self.state.receive_data(data)
            for event in events:
                if isinstance(event, h2.events.DataReceived):
                    self.state.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            self.flush()
            if any(isinstance(event, kind) for event in events):
                return

    def begin(self, path):
        stream = self.state.get_next_available_stream_id()
        self.state.send_headers(stream, [(":method", "GET"), (":path", path), (":scheme", "https"), (":authority", "localhost"),
                                         ("user-agent", "lull-test"), ("accept", "*/*")], end_stream=True)
        self.flush()

    def request(self, path):
        self.begin(path)
        self.until(h2.events.StreamEnded)

    def ping(self):
        self.state.ping(b"12345678")
        self.flush()
        self.until(h2.events.PingAckReceived)

    def close(self):
        self.socket.close()
