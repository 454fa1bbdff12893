# SPDX-License-Identifier: Apache-2.0
"""A small client of the API server: what a kubectl process of 60 MB would be too slow for."""
import http.client
import json
import socket
import ssl
import time
import urllib.parse

from . import layout, namespaces

PATCHES = {"merge": "application/merge-patch+json", "json": "application/json-patch+json",
           "apply": "application/apply-patch+yaml"}


class ApiError(Exception):
    """The server's refusal: its code and its Status."""

    def __init__(self, code, body):
        super().__init__(f"{code}: {body[:500].decode(errors='replace')}")
        self.code, self.body = code, body


class Connection(http.client.HTTPSConnection):
    """From within a network namespace."""

    def __init__(self, namespace, *arguments, **options):
        super().__init__(*arguments, **options)
        self.namespace = namespace

    def connect(self):
        raw = namespaces.connect(self.namespace, self.host, self.port, self.timeout)
        self.sock = self._context.wrap_socket(raw, server_hostname=self.host)


class Api:
    """Requests as one client, by default the administrator."""

    def __init__(self, where, client="admin", port=layout.API_PORT, token=None):
        self.where, self.port, self.token = where, port, token
        self.tls = ssl.create_default_context(cafile=where.certificates / "ca.crt")
        if not token:
            self.tls.load_cert_chain(where.certificates / f"{client}.crt", where.certificates / f"{client}.key")

    def open(self, method, path, body=None, headers=None, timeout=30, **query):
        """Returns the answer, unread, and its connection."""
        connection = Connection(self.where.namespace_path("fab"), layout.CONTROL_PLANE[0], self.port, timeout=timeout,
                                context=self.tls)
        headers = {"Accept": "application/json", **(headers or {})}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if query:
            path += "?" + urllib.parse.urlencode(query)
        connection.request(method, path, body, headers)
        return connection.getresponse(), connection

    def raw(self, method, path, body=None, headers=None, **options):
        """Returns the body; a refusal raises."""
        response, connection = self.open(method, path, body, headers, **options)
        try:
            content = response.read()
        finally:
            connection.close()
        if response.status >= 400:
            raise ApiError(response.status, content)
        return content

    def call(self, method, path, body=None, kind="application/json", **options):
        encoded = None if body is None else json.dumps(body).encode()
        return json.loads(self.raw(method, path, encoded, {"Content-Type": kind}, **options))

    def get(self, path, **query):
        return self.call("GET", path, **query)

    def post(self, path, body, **query):
        return self.call("POST", path, body, **query)

    def delete(self, path, **query):
        """What is gone already is as good as deleted."""
        try:
            return self.call("DELETE", path, **query)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    def patch(self, path, body, how="merge", **query):
        return self.call("PATCH", path, body, PATCHES[how], **query)

    def apply(self, path, body):
        return self.patch(path, body, "apply", fieldManager="lull-tests", force="true")

    def watch(self, path, version, seconds, **query):
        """Yields the events after a version until the time is up."""
        response, connection = self.open("GET", path, timeout=seconds + 5, watch=1, resourceVersion=version,
                                         timeoutSeconds=max(1, int(seconds)), **query)
        try:
            if response.status != 200:
                raise ApiError(response.status, response.read())
            for line in response:
                yield json.loads(line)
        finally:
            connection.close()

    def until(self, path, satisfied, timeout=60, **query):
        """Waits, by a watch, until satisfied(dictionary of a collection's objects by "namespace/name"). Returns what satisfied
        returned. A collection is given by its path, a single object by a fieldSelector on its name."""
        deadline = time.monotonic() + timeout
        while True:
            listed = self.get(path, **query)
            objects = {key(item): item for item in listed["items"]}
            if result := satisfied(objects):
                return result
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{path} did not become as awaited in {timeout} s: {json.dumps(objects)[:2000]}")
            for event in self.watch(path, listed["metadata"]["resourceVersion"], left, **query):
                if event["type"] == "ERROR":
                    break
                if event["type"] == "DELETED":
                    objects.pop(key(event["object"]), None)
                else:
                    objects[key(event["object"])] = event["object"]
                if result := satisfied(objects):
                    return result

    def healthy(self, path="/readyz"):
        try:
            self.raw("GET", path, timeout=5)
        except (OSError, ApiError, http.client.HTTPException):
            return False
        return True


def key(item):
    metadata = item["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def condition(item, kind):
    """The status of a condition: "True", "False", "Unknown" or None."""
    for entry in item.get("status", {}).get("conditions") or ():  # a definition that was just made has null
        if entry["type"] == kind:
            return entry["status"]
    return None


def listens(path):
    """Whether someone listens on a Unix socket: its file alone may be a dead one's."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
    return True


def health(namespace, address, port, path):
    """Asks a plain HTTP health endpoint. Returns what it says when it says yes, else None."""
    try:
        with namespaces.connect(namespace, address, port, 5) as connection:
            connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")
    except OSError:
        return None
    return body if head.split()[1:2] == [b"200"] else None
