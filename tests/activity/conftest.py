# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import subprocess

import pytest

from machine import Backend, Machine

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def watch_tool():
    build = pathlib.Path(os.environ.get("BUILD", "build"))
    return (ROOT / build / "tests/activity/watch").resolve()


@pytest.fixture(scope="session")
def machine(tmp_path_factory):
    directory = tmp_path_factory.mktemp("activity")
    for parent in directory.parents:
        if parent != pathlib.Path("/tmp") and parent.is_relative_to("/tmp"):
            parent.chmod(0o755)  # servers run as other users
    machine = Machine(directory)
    yield machine
    machine.close()


@pytest.fixture(scope="session")
def the_backend(machine):
    return Backend()


@pytest.fixture
def backend(the_backend):
    the_backend.reset()
    yield the_backend
    the_backend.reset()


@pytest.fixture(scope="session")
def certificate(machine):
    key, pem = machine.directory / "key.pem", machine.directory / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost", "-keyout", key, "-out", pem], check=True, capture_output=True)
    key.chmod(0o644)
    return pem, key
