"""Starts processes by forking one that has imported what they need: several times sooner than anew.

Most of what a test of workers takes is the start of Python and Django in each of them, and most of
what a mutant takes that of pytest. A zygote imports what depends on no settings and on no code of
this project; a fork of it gets the environment, the folder, the session and the output that a new
process would have, and runs a module as `python -m` does. It ends with the process that started it.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DJANGO = (
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
"""What workers import."""
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
        if self.poll() is None:
            os.kill(self.pid, number)

    def _read(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._line], [], [], timeout)[0]:
            self.returncode = int(receive(self._line))
            self._line.close()
        return self.returncode


class Zygote:
    """A zygote of this process; `flags` are options of its Python."""

    def __init__(self, imported: Iterable[str] = DJANGO, flags: Sequence[str] = ()) -> None:
        self._control, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with inside:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, *flags, "-m", "tests.zygote"),
                    *(str(inside.fileno()), *imported),
                ],
                cwd=ROOT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                pass_fds=[inside.fileno()],
                start_new_session=True,
            )

    def start(
        self,
        module: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        log: Path,
        *,
        folder: Path = ROOT,
    ) -> ForkedProcess:
        """Run `python -m <module> <argv>` in a session of its own; its output goes to `log`."""
        request = {"argv": [module, *argv], "env": {**env}, "log": str(log), "folder": str(folder)}
        line, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with inside:
            socket.send_fds(self._control, [json.dumps(request).encode()], [inside.fileno()])
        return ForkedProcess(int(receive(line)), line)

    def close(self) -> None:
        self._control.close()
        self._process.wait(10.0)


def receive(line: socket.socket) -> bytes:
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
            return list(request["argv"])
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
    os.chdir(request["folder"])
    sys.path[0] = request["folder"]
    sys.dont_write_bytecode = bool(request["env"].get("PYTHONDONTWRITEBYTECODE"))
    del sys.modules["tests"]  # the folder may hold another


if __name__ == "__main__":
    for name in sys.argv[2:]:
        import_module(name)
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as control:
        arguments = serve(control)
    if arguments is not None:
        sys.argv = arguments
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
