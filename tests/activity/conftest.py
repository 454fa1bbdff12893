# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from machine import Backend, Machine

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def watch_tool():
    build = pathlib.Path(os.environ.get("BUILD", "build"))
    return (ROOT / build / "tests/activity/watch").resolve()


@pytest.fixture(scope="session")
def machine():
    # Not pytest's own directory: servers run as other users, and pytest closes it to them.
    directory = pathlib.Path(tempfile.mkdtemp(prefix="lull-activity-"))
    machine = Machine(directory)
    yield machine
    machine.close()
    shutil.rmtree(directory)


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
