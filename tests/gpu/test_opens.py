# SPDX-License-Identifier: Apache-2.0
"""Opens of devices, told by the kernel: found at once, nobody hindered, and found all the same where they are not told."""
import os
import pathlib
import stat
import subprocess

import pytest

from conftest import BTRFS, FUSE, LOOP, TUN
from machine.cgroup import Cgroup
from machine.policy import policy
from watcher import Watcher

# Opens the device when it is told to, and says what became of it.
OPENER = """
import os, stat, sys
print("ready", flush=True)
for line in sys.stdin:
    word, path, *rest = line.split()
    try:
        if word == "open":
            os.open(path, os.O_RDONLY)
        else:
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(*map(int, rest)))
        print("done", flush=True)
    except OSError as error:
        print(error.strerror, flush=True)
"""
LOOK_SECONDS = 30  # between two looks at all processes


class Opener:
    def __init__(self, cgroup):
        def enter():
            (cgroup.path / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")

        self.process = subprocess.Popen(["/usr/bin/python3", "-c", OPENER], preexec_fn=enter, text=True,  # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n"

    def say(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def close(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(name="cgroup")
def fixture_cgroup():
    made = Cgroup("lull-opens-test")
    yield made
    made.remove()


@pytest.fixture(name="opener")
def fixture_opener(cgroup):
    made = Opener(cgroup)
    yield made
    made.close()


def opens(control):
    return control.get("/v1/gpus")["sources"]["opens"]


def names(control):
    return [found["name"] for found in control.get("/v1/gpus")["workloads"]]


def test_who_opens_a_device_is_found_at_once(node, gpus, cgroup, opener):
    control = Watcher(node, cgroup.path).start().control
    control.until(lambda: opens(control).startswith("seen as they happen: 0 so far"), 30, "the driver")
    assert opener.say("open", gpus.node(TUN)) == "done"

    # All processes have just been looked through, and are again in half a minute.
    control.until(lambda: names(control) == [cgroup.path.name], LOOK_SECONDS / 2, "the workload")
    assert opens(control) == "seen as they happen: 1 so far, 0 not told"

    # Another device of a workload that is known.
    assert opener.say("open", gpus.node(FUSE)) == "done"
    control.until(lambda: control.get(f"/v1/gpus/{cgroup.path.name}")["open_devices"] == 2, 30, "the second device")


def test_a_named_workload_s_opens_are_seen_in_its_own_cgroup_only(node, gpus, opener):
    script = pathlib.Path(__file__).with_name("workload.py")
    node.start(policy("certain", listen=["tcp/[::]:8001"], idle={"after": "1h"},
                      command=["/usr/bin/python3", script, 8001, gpus.node(TUN), gpus.library]))
    control = node.control
    control.until(lambda: opens(control).startswith("seen"), 60, "the driver")
    assert opener.say("open", gpus.node(TUN)) == "done"
    control.wake("certain")
    control.until_phase("Awake", "certain", 30)
    control.until(lambda: "certain" in names(control), LOOK_SECONDS / 2, "the workload")
    assert opens(control).startswith("seen as they happen: 1 so far")


def test_nobody_is_denied_anything_with_the_daemon_or_without(node, gpus, cgroup, opener, tmp_path):
    numbers = iter(range(1000))
    mine = [gpus.node(minor) for minor in (TUN, FUSE, LOOP, BTRFS)]

    def can_do_everything():
        for path in ["/dev/null", "/dev/zero", "/dev/urandom", "/proc/self/status", *mine]:
            assert opener.say("open", path) in ("done", os.strerror(6)), path  # no such device: allowed, but there is none
        for major in (1, 10, 195, 226):
            made = tmp_path / f"made{next(numbers)}"
            assert opener.say("mknod", made, major, 3) == "done"
            assert stat.S_ISCHR(made.stat().st_mode)

    can_do_everything()
    daemon = Watcher(node, cgroup.path).start()
    daemon.control.until(lambda: opens(daemon.control).startswith("seen as they happen"), 30, "the driver")
    can_do_everything()
    daemon.control.until(lambda: names(daemon.control), 30, "the workload")
    daemon.kill()
    can_do_everything()


def test_a_driver_that_comes_after_another_is_noticed(node, gpus, cgroup, opener):
    gpus.load("drm")
    control = Watcher(node, cgroup.path).start().control
    control.until(lambda: opens(control).startswith("seen as they happen"), 30, "the first driver")
    assert opener.say("open", gpus.node(TUN)) == "done"
    gpus.load("nvidia")
    control.until(lambda: names(control) == [cgroup.path.name], 2 * LOOK_SECONDS, "the workload")


def test_without_the_right_to_see_opens_they_are_looked_for(node, gpus, cgroup, opener):
    assert opener.say("open", gpus.node(TUN)) == "done"
    daemon = Watcher(node, cgroup.path, without=("net_admin", "sys_admin")).start()
    daemon.control.until(lambda: names(daemon.control) == [cgroup.path.name], 30, "the workload")
    assert opens(daemon.control) == "looked for twice a minute: Operation not permitted"
    assert daemon.log().count("opens of GPUs are not seen as they happen, but looked for twice a minute") == 1


def test_only_below_the_cgroup_that_was_named_workloads_are_found(node, gpus, cgroup, opener):
    elsewhere = Cgroup("lull-opens-elsewhere")
    other = Opener(elsewhere)
    try:
        assert opener.say("open", gpus.node(TUN)) == "done"
        assert other.say("open", gpus.node(TUN)) == "done"
        control = Watcher(node, cgroup.path).start().control
        control.until(lambda: names(control), 30, "a workload")
        assert names(control) == [cgroup.path.name]
        assert control.get(f"/v1/gpus/nvidia{TUN}")["other_processes"] >= 1
    finally:
        other.close()
        elsewhere.remove()


def test_a_cgroup_elsewhere_than_cgroup2_is_an_error(node):
    daemon = Watcher(node, "/proc")
    daemon.start(wait=False)
    assert daemon.wait() != 0
    assert 'lulld: --cgroup: "/proc" is not a cgroup; name a directory below ' in daemon.log()
