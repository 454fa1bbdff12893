# SPDX-License-Identifier: Apache-2.0
"""The container image: what is in it, and that anyone makes the same."""
import gzip
import io
import json
import os
import pathlib
import subprocess
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
PACKED_MAX = 48_000_000 if BUILD.name == "sanitize" else 16_000_000  # sanitizers are larger than all we have


def make(archive, **environment):
    done = subprocess.run([ROOT / "tools/make-image", archive], capture_output=True, text=True, check=False,
                          env={**os.environ, "BUILD": str(BUILD), **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


class Image:
    """An archive, read as a runtime reads it: from the index to the layer, by digests."""

    def __init__(self, archive):
        with tarfile.open(archive) as self.tar:
            [self.described] = self.json("index.json")["manifests"]
            manifest = self.blob(self.described)
            self.configuration = self.blob(manifest["config"])
            [layer] = manifest["layers"]
            self.layer = tarfile.open(fileobj=io.BytesIO(gzip.decompress(self.read(layer))))

    def json(self, name):
        return json.load(self.tar.extractfile(name))

    def read(self, part):
        return self.tar.extractfile("blobs/" + part["digest"].replace(":", "/")).read()

    def blob(self, part):
        return json.loads(self.read(part))


@pytest.fixture(scope="module", name="archive")
def fixture_archive(tmp_path_factory):
    archive = tmp_path_factory.mktemp("image") / "lulld.tar"
    make(archive)
    return archive


def test_two_builds_of_the_image_are_identical(archive, tmp_path):
    previous = os.umask(0o077)  # somebody else's habits
    try:
        make(tmp_path / "again.tar", TZ="Pacific/Auckland", LC_ALL="C.UTF-8")
    finally:
        os.umask(previous)

    assert (tmp_path / "again.tar").read_bytes() == archive.read_bytes()


def test_the_image_is_small_and_has_the_programs_and_their_libraries_only(archive):
    files = [entry.name for entry in Image(archive).layer if entry.isfile()]

    assert archive.stat().st_size < PACKED_MAX
    assert {"bin/lulld", "bin/lull"} == {name for name in files if name.startswith("bin/")}
    assert all(name.startswith(("bin/", "lib/", "lib64/")) for name in files)
    assert all(".so" in name for name in files if not name.startswith("bin/"))


def test_the_image_runs_lulld_as_nobody_unless_told_otherwise(archive):
    settings = Image(archive).configuration["config"]

    assert settings["Entrypoint"] == ["/bin/lulld"]
    assert settings["User"] == "65532:65532"


@pytest.mark.parametrize("program", ["lulld", "lull"])
def test_every_library_that_a_program_loads_is_in_the_image(archive, tmp_path, program):
    image = Image(archive)
    image.layer.extractall(tmp_path)
    loader = next(tmp_path.glob("lib*/ld-linux-*"))
    [libraries] = tmp_path.glob("lib/*-linux-gnu")

    listed = subprocess.run([loader, "--inhibit-cache", "--library-path", libraries, "--list", tmp_path / "bin" / program], check=True,
                            capture_output=True, text=True).stdout

    found = [line.split("=>")[1].split()[0] for line in listed.splitlines() if "=>" in line]
    assert len(found) > 5
    assert all(path.startswith(str(tmp_path)) for path in found), listed


def test_a_missing_build_is_named(tmp_path):
    done = subprocess.run([ROOT / "tools/make-image", tmp_path / "image.tar"], capture_output=True, text=True, check=False,
                          env={**os.environ, "BUILD": str(tmp_path)})

    assert done.returncode != 0
    assert f"there is no {tmp_path}/lulld: run make first" in done.stderr
