"""Celery workers as processes: started, killed and replaced."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.zygote import ROOT

SETTINGS = "tests.celeryapp.settings"


class CeleryWorker:
    """One `celery worker` and its pool, in a process group of its own."""

    def __init__(self, env: dict[str, str], log: Path, *options: str) -> None:
        self.log = log
        command = ["-A", "tests.celeryapp.app", "worker", "-Q", "tenantqueue", "-l", "INFO"]
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "celery", *command, *options],
                cwd=ROOT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def environment(database_url: str, broker_url: str) -> dict[str, str]:
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": SETTINGS,
        "DATABASE_URL": database_url,
        "TEST_BROKER": broker_url,
        "PYTHONUNBUFFERED": "1",
    }
