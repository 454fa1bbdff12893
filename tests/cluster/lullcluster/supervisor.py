# SPDX-License-Identifier: Apache-2.0
"""One process that keeps a cluster's servers running: starts them, restarts those that end, keeps what they say.

    python3 -m lullcluster.supervisor NAME

It takes requests on a Unix socket, one JSON object a line, each answered by one: {"do": "start", "name": …, "argv": […]},
{"do": "stop", "name": …, "signal": …}, {"do": "kill", "name": …, "signal": …}, {"do": "status"}. control.py is the client.
"""
import asyncio
import json
import os
import signal
import sys
import time

from . import cgroups, layout

BACKOFF_FIRST, BACKOFF_LAST = 0.1, 5.0
STEADY = 10.0            # seconds after which a server that ends is restarted without delay
TERMINATION_GRACE = 20.0


class Server:
    """A program that is to run until someone says stop."""

    def __init__(self, name, logs):
        self.name = name
        self.log_path = logs / f"{name}.log"
        self.argv = []
        self.environment = {}
        self.wanted = False
        self.process = None
        self.keeper = None
        self.starts = 0
        self.last_exit = None

    @property
    def pid(self):
        return self.process.pid if self.process and self.process.returncode is None else None

    def note(self, text):
        with open(self.log_path, "a", encoding="utf-8") as log:
            log.write(f"--- {time.strftime('%H:%M:%S')} supervisor: {text}\n")

    async def spawn(self):
        self.note("starting " + " ".join(self.argv))
        with open(self.log_path, "ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self.argv, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, **self.environment})
        self.starts += 1

    async def keep(self, started):
        """Runs the program as long as it is wanted; @started hears of the first start."""
        backoff = BACKOFF_FIRST
        try:
            while self.wanted:
                begun = time.monotonic()
                await self.spawn()
                if not started.done():
                    started.set_result(None)
                self.last_exit = await self.process.wait()
                self.note(f"ended with {self.last_exit}")
                if time.monotonic() - begun > STEADY:
                    backoff = BACKOFF_FIRST
                elif self.wanted:
                    await asyncio.sleep(backoff)
                    backoff = min(backoff * 2, BACKOFF_LAST)
        except OSError as error:
            self.wanted = False
            self.note(str(error))
            if not started.done():
                started.set_exception(error)

    async def start(self, argv, environment):
        changed = (argv, environment) != (self.argv, self.environment)
        if self.wanted and not changed:
            return
        if self.wanted:  # not asked to end: an API server takes its time over that
            await self.stop(signal.SIGKILL)
        self.argv, self.environment, self.wanted = argv, environment, True
        started = asyncio.get_running_loop().create_future()
        self.keeper = asyncio.create_task(self.keep(started))
        await started

    async def stop(self, number):
        """Returns when it has ended, whatever that takes."""
        self.wanted = False
        if not self.keeper:
            return
        if self.pid:
            self.process.send_signal(number)
            try:
                await asyncio.wait_for(self.process.wait(), TERMINATION_GRACE)
            except asyncio.TimeoutError:
                self.note("does not end, killed")
                self.process.kill()
                await self.process.wait()
        self.keeper.cancel()  # it may be waiting to start it again
        await asyncio.gather(self.keeper, return_exceptions=True)
        self.keeper = None

    async def kill(self, number):
        """A signal that ends a process has ended it when this returns; it is started again as after any other end."""
        process = self.process
        if not self.pid:
            raise ValueError(f"{self.name} is not running")
        process.send_signal(number)
        if number == signal.SIGKILL:
            await process.wait()

    def status(self):
        return {"pid": self.pid, "wanted": self.wanted, "starts": self.starts, "last_exit": self.last_exit}


class Supervisor:
    """Answers requests about servers."""

    def __init__(self, where):
        self.where = where
        self.servers = {}

    def server(self, name):
        if name not in self.servers:
            raise ValueError(f'there is no server "{name}"; there are {", ".join(self.servers)}')
        return self.servers[name]

    async def answer(self, request):
        what, name = request["do"], request.get("name")
        if what == "status":
            return {name: server.status() for name, server in self.servers.items()}
        if what == "start":
            server = self.servers.setdefault(name, Server(name, self.where.logs))
            await server.start(request.get("argv") or server.argv, request.get("environment", server.environment))
        elif what == "stop":
            await self.server(name).stop(request.get("signal", signal.SIGTERM))
        elif what == "kill":
            await self.server(name).kill(request.get("signal", signal.SIGKILL))
        else:
            raise ValueError(f'"{what}" is no request')
        return self.servers[name].status()

    async def converse(self, reader, writer):
        while line := await reader.readline():
            try:
                reply = {"ok": await self.answer(json.loads(line))}
            except (ValueError, KeyError, OSError) as error:
                reply = {"error": str(error)}
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def run(self):
        server = await asyncio.start_unix_server(self.converse, self.where.supervisor_socket, limit=1 << 20)
        async with server:
            await server.serve_forever()


def main():
    where = layout.Layout(sys.argv[1])
    cgroups.enter(f"{where.cgroup}/system")
    asyncio.run(Supervisor(where).run())


if __name__ == "__main__":
    main()
