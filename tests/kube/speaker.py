# SPDX-License-Identifier: Apache-2.0
"""Programs that are told a line at a time and say JSON objects, one a line."""
import json
import queue
import subprocess
import threading


class Speaker:
    """What it says is read as it comes, into `lines`; @end stands for its end there."""

    def __init__(self, command, end=None, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, args=[end], daemon=True).start()

    def _read(self, end):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(end)

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        return self.process.wait(timeout=20)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
