# SPDX-License-Identifier: Apache-2.0
"""A gRPC server without generated code: /t/fast, /t/slow, and /t/watch, a stream that sends one message and is silent then."""
import sys
import time
import urllib.request
from concurrent import futures

import grpc

BACKEND = "http://127.0.0.1:9000"


def fast(request, context):
    return b"ok"


def slow(request, context):
    return urllib.request.urlopen(BACKEND + "/slow").read()


def watch(request, context):
    yield b"hello"
    while context.is_active():
        time.sleep(0.1)


methods = {
    "fast": grpc.unary_unary_rpc_method_handler(fast),
    "slow": grpc.unary_unary_rpc_method_handler(slow),
    "watch": grpc.unary_stream_rpc_method_handler(watch),
}
server = grpc.server(futures.ThreadPoolExecutor(8), options=[("grpc.http2.min_ping_interval_without_data_ms", 50),
                                                             ("grpc.keepalive_permit_without_calls", 1)])
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("t", methods)])
server.add_insecure_port("[::]:8600")
certificate, key = (open(path, "rb").read() for path in sys.argv[1:])
server.add_secure_port("[::]:8601", grpc.ssl_server_credentials([(key, certificate)]))
server.start()
server.wait_for_termination()
