"""The bodies of the measured jobs.

A body that has to be observed appends one line to $BENCHMARK_LOG, in one write: what it was given,
and when it began and ended by CLOCK_MONOTONIC, which all processes of a machine share.
"""

import asyncio
import os
import time
from functools import cache

from django_tenantqueue import current_job, task

WORK_SECONDS = 0.005


@cache
def _log() -> int:
    return os.open(os.environ["BENCHMARK_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def _write(*words: int) -> None:
    os.write(_log(), (" ".join(map(str, words)) + "\n").encode())


def secrets_of(tenant: str) -> list[str]:
    """Return what signs the HTTP jobs of a tenant."""
    return ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]


@task
async def noop_async() -> None:
    """Do nothing, as a coroutine."""


@task
def noop_sync() -> None:
    """Do nothing, in a thread."""


@task
async def stamp(number: int) -> None:
    """Write when the body began."""
    now = time.monotonic_ns()
    _write(0, number, now, now)


@task
async def linger_once(number: int) -> None:
    """Write when the body began; in the first attempt, wait to be killed."""
    now = time.monotonic_ns()
    _write(0, number, now, now)
    if current_job().attempt == 1:
        await asyncio.sleep(600)


@task
async def work(tenant: int, number: int) -> None:
    """Take five milliseconds for a tenant."""
    begun = time.monotonic_ns()
    await asyncio.sleep(WORK_SECONDS)
    _write(tenant, number, begun, time.monotonic_ns())


@task
def nap(seconds: float) -> None:
    """Keep a thread busy."""
    time.sleep(seconds)
