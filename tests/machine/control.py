# SPDX-License-Identifier: Apache-2.0
"""The daemon's control socket: requests, and waiting for what its events announce."""
import http.client
import json
import select
import socket
import time


class ControlError(Exception):
    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=10):
        super().__init__("lulld", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class EventStream:
    """Events as the daemon sends them. Works on the socket itself: http.client cannot wait with a deadline between lines."""

    def __init__(self, path, after):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(str(path))
        self.sock.sendall(f"GET /v1/events/stream?after={after} HTTP/1.1\r\nHost: lulld\r\n\r\n".encode())
        self.pending = b""
        self.poller = select.poll()
        self.poller.register(self.sock, select.POLLIN)

    def next(self, timeout):
        """The next event, or None when none came in time."""
        deadline = time.monotonic() + timeout
        while True:
            while b"\n" in self.pending:
                line, self.pending = self.pending.split(b"\n", 1)
                if line.startswith(b"{"):  # everything else is the answer's head and its chunks' lengths
                    return json.loads(line)
            left = deadline - time.monotonic()
            if left <= 0 or not self.poller.poll(left * 1000):
                return None
            data = self.sock.recv(65536)
            if not data:
                raise ConnectionError("the daemon ended the stream of events")
            self.pending += data

    def close(self):
        self.sock.close()


class Control:
    def __init__(self, path):
        self.path = path

    def request(self, method, target):
        connection = UnixConnection(self.path)
        try:
            connection.request(method, target)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def json(self, method, target):
        status, body = self.request(method, target)
        answer = json.loads(body)
        if status >= 400:
            raise ControlError(status, answer["error"]["message"])
        return answer

    def get(self, target):
        return self.json("GET", target)

    def status(self):
        return self.get("/v1/status")

    def policy(self, name="web"):
        return self.get(f"/v1/policies/{name}")

    def policies(self):
        return {policy["name"]: policy for policy in self.get("/v1/policies")["policies"]}

    def phase(self, name="web"):
        return self.policy(name)["phase"]

    def why(self, name="web"):
        return self.get(f"/v1/policies/{name}/why")["text"]

    def wake(self, name="web"):
        return self.json("POST", f"/v1/policies/{name}/wake")

    def sleep(self, name="web"):
        return self.json("POST", f"/v1/policies/{name}/sleep")

    def held(self):
        return self.get("/v1/held")["packets"]

    def metrics(self):
        """{(name, frozenset of label pairs): value}, as the Prometheus client reads them. The demo does without that package."""
        from prometheus_client.parser import text_string_to_metric_families  # pylint: disable=import-outside-toplevel

        _, body = self.request("GET", "/metrics")
        return {(sample.name, frozenset(sample.labels.items())): sample.value
                for family in text_string_to_metric_families(body.decode()) for sample in family.samples}

    def packets(self, verdict):
        """How many first packets met that verdict, for whatever reason."""
        return sum(value for (name, labels), value in self.metrics().items()
                   if name == "lull_hold_packets_total" and ("verdict", verdict) in labels)

    def events(self, after=0):
        return self.get(f"/v1/events?after={after}")["events"]

    def newest_event(self):
        return max((event["seq"] for event in self.events()), default=0)

    def stream(self, after=0):
        return EventStream(self.path, after)

    def condition(self, kind, name="web"):
        """The condition of that type, or None."""
        found = [condition for condition in self.policy(name)["conditions"] if condition["type"] == kind]
        return found[0] if found else None

    def until(self, holds, timeout, what="it"):
        """Asks @holds again after every event, and every 50 ms for what no event announces, until it says something true."""
        deadline = time.monotonic() + timeout
        stream = self.stream(after=self.newest_event())
        try:
            while not (answer := holds()):
                left = deadline - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"{what} did not come true within {timeout} s")
                stream.next(min(left, 0.05))
            return answer
        finally:
            stream.close()

    def until_phase(self, phase, name="web", timeout=10):
        def reached():
            seen = self.policy(name)
            return seen if seen["phase"] == phase else None
        return self.until(reached, timeout, f'policy "{name}" in phase {phase}')

    def until_condition(self, kind, name="web", timeout=10):
        return self.until(lambda: self.condition(kind, name), timeout, f'condition {kind} of policy "{name}"')

    def until_event(self, reason, policy="web", after=0, timeout=10):
        def found():
            return [event for event in self.events(after) if event["reason"] == reason and event["policy"] == policy]
        return self.until(found, timeout, f'event {reason} of policy "{policy}"')[0]
