# SPDX-License-Identifier: Apache-2.0
"""The program tests/kube/watch: a reflector that tells what becomes of its view."""
from speaker import Speaker


class Watcher(Speaker):
    def __init__(self, tool, kubeconfig, path="/things", *, prefix=(), environment=None):
        super().__init__([*prefix, tool, kubeconfig, path], env=environment)
        self.seen = []

    def until(self, event, seconds=30, **wanted):
        """The next line of that kind, with these members; those before it are kept in `seen`."""
        while True:
            line = self.lines.get(timeout=seconds)
            assert line is not None, f"the watcher has ended; it said {self.seen[-5:]}"
            self.seen.append(line)
            if line["event"] == event and all(line.get(key) == value for key, value in wanted.items()):
                return line

    def ask(self, command, answer=None):
        self.tell(command)
        return self.until(answer or command.split()[0])

    def counters(self):
        return self.ask("counters")

    def view(self):
        return self.ask("view")["view"]

    def said(self, event):
        return [line for line in self.seen if line["event"] == event]
