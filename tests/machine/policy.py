# SPDX-License-Identifier: Apache-2.0
"""Policies for tests: short times, and what a test wants different merged in."""
import json

from machine.daemon import build_directory


def tool(name):
    """A program of tests/tools, built by "make tools"."""
    return str(build_directory() / "tests" / "tools" / name)


def merge(base, changes):
    merged = dict(base)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def policy(name="web", listen=("tcp/[::]:8080",), command=None, **spec):
    """A document for lulld, as JSON, which is YAML. Without a command the test server serves what is listened on.

    It does not fall asleep by itself within a test, unless idle says so: see asleep_after()."""
    base = {
        "listen": list(listen),
        "target": {"kind": "Process", "command": [str(word) for word in command or [tool("server"), *listen]],
                   "stopTimeout": "2s"},
        "idle": {"after": "10m", "minAwake": "1ms"},
        "wake": {"holdTimeout": "20s"},
    }
    return json.dumps({"apiVersion": "lull.dev/v1alpha1", "kind": "ScaleToZero", "metadata": {"name": name},
                       "spec": merge(base, spec)}) + "\n"


def server(*options, listen=("tcp/[::]:8080",)):
    """The test server's command line."""
    return [tool("server"), *options, *listen]
