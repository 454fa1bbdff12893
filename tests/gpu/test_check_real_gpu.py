# SPDX-License-Identifier: Apache-2.0
"""tools/check-real-gpu, as far as it can be seen without a GPU: it says that there is none, and what it reports of a stand-in is right."""
import os
import pathlib
import re
import subprocess

from conftest import TUN

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools/check-real-gpu"


def run(**environment):
    return subprocess.run([SCRIPT], capture_output=True, text=True, timeout=600, check=False, stdin=subprocess.DEVNULL,
                          env={**os.environ, **environment})


def test_without_a_gpu_one_line_says_so():
    done = run()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == ("check-real-gpu: this machine has no NVIDIA driver (/proc/devices names none); "
                           "run it where there is a GPU\n")


def test_every_check_passes_on_the_stand_ins(gpus):
    gpus.say(f"device minor={TUN} power=60000")
    done = run(LULL_CUDA_DEVICE=str(gpus.node(TUN)))
    assert done.returncode == 0, done.stdout + done.stderr
    report = done.stdout
    assert report.endswith("\n0 not as expected\n")
    assert len(re.findall("^- ok ", report, re.MULTILINE)) == 6 and "FAIL" not in report
    assert f"CUDA: 12.4, {gpus.library}" in report
    assert re.search(r"^\| cuLaunchKernel \| 813d\w+ \| cmpl, rip-relative \| cuLaunchKernel \| cuLaunchKernel_ptsz \|$", report,
                     re.MULTILINE)
    assert re.search(r"^\| cuMemcpyHtoD_v2 \| f30f1efa55\w+ \| endbr64, push \| cuMemcpyHtoD\w* \|", report, re.MULTILINE)
    assert re.search(r"lull probes to submit: \d+ functions, 0 of them slow", report)
    assert re.search(r"^- nobody watches: \d.*\n- armed: \d.*\n- sampled: \d", report, re.MULTILINE)
