# SPDX-License-Identifier: Apache-2.0
"""The images of the tests' pods."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
SOURCES = ROOT / "tests/cluster/images"
sys.path.insert(0, str(ROOT / "tools"))

from oci import add_program, write  # noqa: E402  pylint: disable=wrong-import-position,unused-import


def compile_static(source, into):
    """Static, so that an image is one file. -s: symbols are of no use in there."""
    into.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([os.environ.get("CC", "gcc"), "-O2", "-static", "-s", "-pthread", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE",
                    "-o", into, source], check=True)
    return into
