"""Starts `runworker` by forking a process that has imported Django: several times sooner than anew.

Most of what a test of workers takes is the start of Python and Django in each of them. The zygote,
one for each process of the test run, imports what does not depend on settings; a fork of it gets
the environment, the session and the output that a new process would have, and runs the command.
It ends with the process that started it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
IMPORTED = (
    "asyncio",
    "concurrent.futures.thread",
    "django.contrib.messages.middleware",
    "django.core.management",
    "django.db.backends.postgresql.base",
    "django.db.models",
    "django.http",
    "django.urls",
    "psutil",
    "psycopg",
)
MOST_BYTES = 100_000


class ForkedProcess:
    """A process that the zygote has started; has what the tests use of subprocess.Popen."""

    def __init__(self, pid: int, line: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._line = line

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self._read(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; return the exit code. Raises subprocess.TimeoutExpired."""
        code = self._read(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def _read(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._line], [], [], timeout)[0]:
            self.returncode = int(receive(self._line))
            self._line.close()
        return self.returncode


class Zygote:
    """The zygote of this process."""

    def __init__(self) -> None:
        self._control, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with inside:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "error", "-m", "tests.process.zygote", str(inside.fileno())],
                cwd=ROOT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                pass_fds=[inside.fileno()],
                start_new_session=True,
            )

    def start(self, argv: Sequence[str], env: Mapping[str, str], log: Path) -> ForkedProcess:
        """Run `python -m django <argv>` in a session of its own; its output goes to `log`."""
        request = json.dumps({"argv": [*argv], "env": {**env}, "log": str(log)}).encode()
        line, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with inside:
            socket.send_fds(self._control, [request], [inside.fileno()])
        return ForkedProcess(int(receive(line)), line)

    def close(self) -> None:
        """End it."""
        self._control.close()
        self._process.wait(10.0)


def receive(line: socket.socket) -> bytes:
    """Return what the zygote tells."""
    told = line.recv(MOST_BYTES)
    assert told, "the zygote has ended"
    return told


# inside the zygote


def serve(control: socket.socket) -> list[str] | None:
    """Fork for each request; return its arguments in each fork, and None at the end."""
    ended, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken)
    lines: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([control, ended], [], [])
        if ended in ready:
            os.read(ended, 1000)
            reap(lines)
        if control not in ready:
            continue
        message, descriptors, _, _ = socket.recv_fds(control, MOST_BYTES, 1)
        if not message:
            return None
        request, line = json.loads(message), socket.socket(fileno=descriptors[0])
        begun, beginning = os.pipe()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for inherited in (line, *lines.values()):
                inherited.close()
            for descriptor in (ended, woken, begun):
                os.close(descriptor)
            become(request)
            os.close(beginning)
            return ["django", *request["argv"]]
        os.close(beginning)
        os.read(begun, 1)  # until the fork has its session
        os.close(begun)
        lines[pid] = line
        line.send(b"%d" % pid)


def reap(lines: dict[int, socket.socket]) -> None:
    """Tell the exit codes of those that have ended."""
    while lines:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with lines.pop(pid) as line, suppress(BrokenPipeError):
            line.send(b"%d" % os.waitstatus_to_exitcode(status))


def become(request: dict[str, Any]) -> None:
    """Take on what a new process would have been given."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for target, source in ((0, nothing), (1, output), (2, output)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(output)
    os.environ.clear()
    os.environ.update(request["env"])


if __name__ == "__main__":
    for name in IMPORTED:
        import_module(name)
    with socket.socket(fileno=int(sys.argv[1])) as control:
        arguments = serve(control)
    if arguments is not None:
        sys.argv = arguments
        import_module("django.core.management").execute_from_command_line(arguments)
