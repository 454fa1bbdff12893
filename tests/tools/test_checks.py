# SPDX-License-Identifier: Apache-2.0
"""The checks find what they are for, and this tree passes them."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LICENSE = "/* SPDX-License-Identifier: Apache-2.0 */\n"


def run(tool, *arguments):
    return subprocess.run([ROOT / "tools" / tool, *arguments], capture_output=True, text=True, timeout=120, check=False)


class Tree:
    """A repository with one commit."""

    def __init__(self, directory):
        self.directory = directory
        self.git("init", "-q")
        self.git("commit", "-q", "--allow-empty", "-m", "base: begin")

    def git(self, *words):
        subprocess.run(["git", "-C", self.directory, "-c", "user.name=t", "-c", "user.email=t@localhost", *words], check=True,
                       capture_output=True)

    def write(self, name, text):
        (self.directory / name).parent.mkdir(parents=True, exist_ok=True)
        (self.directory / name).write_text(text, encoding="utf-8")

    def check(self):
        return run("check-style", self.directory)


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


@pytest.fixture
def layered(tmp_path):
    def write(name, text):
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / name).write_text(text, encoding="utf-8")
        return run("check-layers", tmp_path)
    return write


def test_this_tree_is_layered():
    assert run("check-layers").stdout == ""


def test_an_include_may_point_down_and_stay_beside(layered):
    assert layered("hold/hold.c", '#include "base/log.h"\n#include "hold/hold.h"\n#include <errno.h>\n').returncode == 0
    assert layered("cli/main.c", '#include "standalone/x.h"\n').returncode == 0


@pytest.mark.parametrize("layer, other", [("base", "policy"), ("hold", "target"), ("serve", "standalone"), ("agent", "controller")])
def test_an_include_that_points_up_or_sideways_is_named(layered, layer, other):
    done = layered(f"{layer}/one.c", f'#include "base/macros.h"\n#include "{other}/two.h"\n')
    expected = [f"src/{layer}/one.c:2: {layer} must not include {other}"]
    assert done.stdout.splitlines()[-1:] == expected
    assert done.returncode == 1


def test_a_directory_that_is_no_layer_is_named(layered):
    assert "src/junk: is not a layer" in layered("junk/one.c", "").stdout


def test_a_tidy_file_passes(tree):
    tree.write("src/base/x.c", LICENSE + "int x(void)\n{\n        return 0;\n}\n")
    assert tree.check().stdout == ""


@pytest.mark.parametrize("text, complaint", [
    ("int x;\n", "src/x.c:1: wants SPDX-License-Identifier: Apache-2.0"),
    (LICENSE + "\tint x;\n", "src/x.c:2: a tab"),
    (LICENSE + "int x; \n", "src/x.c:2: white space at the end"),
    (LICENSE + "int x;", "src/x.c:2: no newline at the end"),
    (LICENSE + "/* TO" + "DO: more */\n", "src/x.c:2: unfinished"),
    (LICENSE + "\n" * 600, "src/x.c: 601 lines"),
    (LICENSE + "int x(void)\n{\n" + "        x();\n" * 79 + "}\n", "src/x.c:2: a function of 81 lines"),
], ids=["licence", "tab", "white space", "newline", "unfinished", "long file", "long function"])
def test_an_untidy_file_is_named(tree, text, complaint):
    tree.write("src/x.c", text)
    done = tree.check()
    assert complaint in done.stdout
    assert done.returncode == 1


def test_kernel_side_files_have_their_own_licence(tree):
    tree.write("bpf/x.bpf.c", LICENSE)
    assert "bpf/x.bpf.c:1: wants SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)" in tree.check().stdout


@pytest.mark.parametrize("message, complaint", [
    ("Fixed things", "subject is not"),
    ("base: Do it.", "subject is not"),
    ("base: do it\nand more", "no empty line after the subject"),
    ("base: do " + "it " * 40, "subject of 128 characters"),
], ids=["no area", "full stop", "no empty line", "long subject"])
def test_a_commit_message_of_another_form_is_named(tree, message, complaint):
    tree.git("commit", "-q", "--allow-empty", "--cleanup=whitespace", "-m", message)
    done = tree.check()
    assert complaint in done.stdout
    assert done.returncode == 1


def test_what_is_installed_is_not_missing():
    assert run("install-dependencies", "--check").stdout == ""


def test_an_unknown_group_is_refused():
    done = run("install-dependencies", "--check", "nope")
    assert done.returncode == 2
    assert '"nope" is no group' in done.stderr


def test_the_unit_leaves_the_daemon_what_probes_on_gpu_libraries_need():
    unit = (ROOT / "deploy/systemd/lulld.service").read_text(encoding="utf-8")
    [needed] = re.findall(r'#define CAPABILITIES "(.*)"', (ROOT / "src/gpu/libraries.c").read_text(encoding="utf-8"))
    left = set(re.findall(r"CAP_\w+", " ".join(re.findall(r"^CapabilityBoundingSet=(.*)$", unit, re.MULTILINE))))
    assert set(re.findall(r"CAP_\w+", needed)) <= left


def test_the_unit_is_one_that_systemd_accepts(tmp_path):
    unit = (ROOT / "deploy/systemd/lulld.service").read_text(encoding="utf-8").replace("@SBINDIR@", str(tmp_path))
    (tmp_path / "lulld").write_text("#!/bin/sh\n", encoding="ascii")
    (tmp_path / "lulld").chmod(0o755)
    (tmp_path / "lulld.service").write_text(unit, encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", tmp_path / "lulld.service"], capture_output=True, text=True,
                          timeout=60, check=False, env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning"})
    assert not re.search(r"lulld\.service", done.stdout + done.stderr), done.stderr
