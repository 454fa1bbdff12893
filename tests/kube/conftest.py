# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import sys

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))

from api_server import ApiServer  # noqa: E402
from certificates import Authority  # noqa: E402
from watcher import Watcher  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def tool():
    return (ROOT / os.environ.get("BUILD", "build") / "tests/kube/watch").resolve()


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


@pytest.fixture
def server(authority):
    server = ApiServer(authority)
    yield server
    server.close()


@pytest.fixture
def kubeconfig(tmp_path, server):
    """Writes one; its user is what the test gives."""
    def write(url=None, authority="authority.crt", cluster="", **user):
        path = tmp_path / "kubeconfig"
        fields = "\n".join(f"    {name}: {value}" for name, value in (user or {"token": "a-token"}).items())
        path.write_text(f"""
apiVersion: v1
kind: Config
current-context: test
contexts: [{{name: test, context: {{cluster: test, user: test}}}}]
clusters:
- name: test
  cluster:
    server: {url or server.url}
    certificate-authority: {authority}
    {cluster}
users:
- name: test
  user:
{fields}
""")
        return path
    return write


@pytest.fixture
def watch(tool, kubeconfig):
    """Starts watchers, and ends them in good order: with a status of 0, so that a sanitizer's findings fail the test."""
    started = []

    def start(config=None, **settings):
        started.append(Watcher(tool, config or kubeconfig(), **settings))
        return started[-1]
    yield start
    try:
        for watcher in started:
            assert watcher.close() == 0
    finally:
        for watcher in started:
            watcher.kill()
