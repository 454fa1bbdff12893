# SPDX-License-Identifier: Apache-2.0
"""What counting the calls of a GPU's driver library costs a program that makes 50,000 of them a second.

In turns: nobody watches; armed, the probes on all the time; armed as lulld does it, which notices that the program is busy and then
only samples. CPU time is that of the program's cgroup, where its probes run, and of the watcher's, with the children that take probes
off.
"""
import contextlib
import json
import statistics
import subprocess

from machine import build_directory
from machine.cgroup import Cgroup

RATE = 50000
ROUNDS = 5
SECONDS = {"nobody": 4, "armed": 4, "sampled": 16}  # the last: a pause and the samples around it, thrice


def cpu_seconds(cgroup):
    fields = dict(line.split() for line in (cgroup.path / "cpu.stat").read_text(encoding="ascii").splitlines())
    return int(fields["usage_usec"]) / 1e6


def enter(cgroup):
    (cgroup.path / "cgroup.procs").write_text("0", encoding="ascii")


class Program:
    """One that takes a line and answers it."""

    def __init__(self, cgroup, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,  # pylint: disable=consider-using-with
                                        preexec_fn=lambda: enter(cgroup))  # pylint: disable=subprocess-popen-preexec-fn
        self.read()

    def read(self):
        return self.process.stdout.readline().strip()

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def one_round(mode, client, program, watcher):
    """CPU seconds a second, of the program and of the watcher."""
    tool = build_directory() / "tests/gpu/watch"
    before = cpu_seconds(program), cpu_seconds(watcher)
    with contextlib.ExitStack() as stack:
        if mode != "nobody":
            watch = Program(watcher, tool, program.path, *(["always"] if mode == "armed" else []))
            stack.callback(watch.close)
            before = cpu_seconds(program), cpu_seconds(watcher)  # loading the programs is done once
            watch.say("arm")
        client.say(f"pace cuLaunchKernel {RATE} {SECONDS[mode] * 1000}")
        after = cpu_seconds(program), cpu_seconds(watcher)
        if mode != "nobody":
            reading = json.loads(watch.say("read"))
            wanted = "full" if mode == "armed" else "sampled"
            if reading["coverage"] != wanted:
                raise RuntimeError(f"{mode}: coverage is {reading['coverage']}, not {wanted}")
    return [(end - begin) / SECONDS[mode] for begin, end in zip(before, after)]


def measure_gpu_calls(report, _make_node):
    results = {mode: [] for mode in SECONDS}
    with contextlib.ExitStack() as stack:
        program, watcher = Cgroup("bench-program"), Cgroup("bench-watcher")
        stack.callback(program.remove)
        stack.callback(watcher.remove)
        client = Program(program, build_directory() / "tests/gpu/client")
        stack.callback(client.close)
        client.say(f"open {build_directory() / 'tests/gpu/libcuda.so.1'}")
        for number in range(ROUNDS):
            for mode in SECONDS if number % 2 == 0 else reversed(SECONDS):
                results[mode].append(one_round(mode, client, program, watcher))

    alone = [sum(shares) for shares in results["nobody"]]
    for mode, budget in (("armed", None), ("sampled", 0.01)):
        watched = [sum(shares) for shares in results[mode]]
        report.add_ratio(f"GPU calls, 50,000/s: CPU of the program and lull, {mode} ÷ not armed", watched, alone, None)
        report.add(f"GPU calls, 50,000/s: cost of being {mode}", "cores",
                   statistics.median(ours - theirs for ours, theirs in zip(watched, alone)), budget, raw=watched)
    report.add("GPU calls, 50,000/s: the program by itself", "cores", statistics.median(alone), raw=alone)
