"""The tasks. Each run leaves two rows, written on a connection of its own: its begin and its end.

Times are those of the machine's clock, which is the database's clock too: the run starts its server
on the same machine. So an interval is exact even where its row had to wait for the server.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from django_tenantqueue import current_job, task

from .identity import own_identity
from .link import Link
from .tables import EFFECT, MARK

RECORDER = "chaos recorder"
NEVER_GIVE_UP = 1000
POISON_ATTEMPTS = 3

_local = threading.local()


def write_mark(mark: dict[str, Any], *, ends: bool) -> None:
    """Write the begin or the end of a run, however long the server is away."""
    if not hasattr(_local, "link"):
        _local.link = Link(os.environ["DATABASE_URL"], RECORDER)
    _local.link.insist(MARK, {**mark, "ends": ends, "at": datetime.now(UTC)})


def new_mark() -> dict[str, Any]:
    """Return what both rows of this run hold."""
    claimed = current_job()._claimed
    return {
        "run": uuid.uuid4(),
        "job": claimed.id,
        "claim_seq": claimed.claim_seq,
        "process": own_identity(os.getpid()),
    }


@contextmanager
def recorded() -> Iterator[None]:
    """Write when the body begins and ends."""
    mark = new_mark()
    write_mark(mark, ends=False)
    try:
        yield
    finally:
        write_mark(mark, ends=True)


@task(max_attempts=NEVER_GIVE_UP)
def plain(milliseconds: float) -> None:
    """Take so long, in a thread."""
    with recorded():
        time.sleep(milliseconds / 1000)


@task(max_attempts=NEVER_GIVE_UP)
async def coroutine(milliseconds: float) -> None:
    """Take so long, in the event loop."""
    mark = new_mark()
    await asyncio.to_thread(write_mark, mark, ends=False)
    try:
        await asyncio.sleep(milliseconds / 1000)
    finally:
        await asyncio.to_thread(write_mark, mark, ends=True)


@task(atomic=True, max_attempts=NEVER_GIVE_UP)
def atomic(milliseconds: float) -> None:
    """Write one row in the transaction that stores the success."""
    with recorded():
        with connection.cursor() as cursor:
            cursor.execute(EFFECT, [current_job().id])
        time.sleep(milliseconds / 1000)


@task(max_attempts=POISON_ATTEMPTS)
def poison(milliseconds: float) -> None:
    """End the process, by one of two ways."""
    write_mark(new_mark(), ends=False)
    time.sleep(milliseconds / 1000)
    if current_job().id % 2:
        os._exit(3)
    os.kill(os.getpid(), signal.SIGKILL)


KINDS = {"plain": plain, "atomic": atomic, "coroutine": coroutine, "poison": poison}
