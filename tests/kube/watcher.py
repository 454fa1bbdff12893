# SPDX-License-Identifier: Apache-2.0
"""The program tests/kube/watch: a reflector that tells what becomes of its view."""
import json
import queue
import subprocess
import threading


class Watcher:
    def __init__(self, tool, kubeconfig, path="/things", *, prefix=(), environment=None):
        self.process = subprocess.Popen([*prefix, tool, kubeconfig, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=environment)
        self.lines, self.seen = queue.Queue(), []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def until(self, event, seconds=30, **wanted):
        """The next line of that kind, with these members; those before it are kept in `seen`."""
        while True:
            line = self.lines.get(timeout=seconds)
            assert line is not None, f"the watcher has ended; it said {self.seen[-5:]}"
            self.seen.append(line)
            if line["event"] == event and all(line.get(key) == value for key, value in wanted.items()):
                return line

    def ask(self, command, answer=None):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.until(answer or command.split()[0])

    def counters(self):
        return self.ask("counters")

    def view(self):
        return self.ask("view")["view"]

    def said(self, event):
        return [line for line in self.seen if line["event"] == event]

    def close(self):
        self.process.stdin.close()
        return self.process.wait(timeout=20)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
