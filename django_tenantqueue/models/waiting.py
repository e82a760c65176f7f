"""Waiting until something has ended: by polls, in a thread or in a coroutine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

from asgiref.sync import sync_to_async
from django.core import mail
from django.db import connections

from ..exceptions import Unsupported

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.5
"""Seconds between two polls of what is waited for. They grow."""


def polls(using: str, seconds: float, what: str, has_ended: Callable[[], bool]) -> Iterator[float]:
    """Yield the seconds between two polls, until `seconds` have passed or it has ended.

    Raises Unsupported inside a transaction of the database `using`. `what`: how the error names it,
    as in "job 7".
    """
    if connections[using].in_atomic_block:
        raise Unsupported(
            f"{what} cannot be waited for inside a transaction: workers see it after the commit. "
            "In a TestCase use run_pending() or eager() of django_tenantqueue.testing"
        )
    end, pause = time.monotonic() + seconds, FIRST_PAUSE
    while not has_ended() and (left := end - time.monotonic()) > 0:
        yield min(pause, left)
        pause = min(LONGEST_PAUSE, pause * 1.5)


def seconds_of(timeout: float | timedelta) -> float:
    return timeout.total_seconds() if isinstance(timeout, timedelta) else timeout


def is_test() -> bool:
    """Whether Django's set-up of tests has run."""
    return hasattr(mail, "outbox")


def sleep_through(pauses: Iterator[float]) -> None:
    """Sleep for each of these."""
    for pause in pauses:
        time.sleep(pause)


async def asleep_through(pauses: Iterator[float]) -> None:
    """See sleep_through(). The next pause is asked for in a thread."""
    look = sync_to_async(lambda: next(pauses, None))
    while (pause := await look()) is not None:
        await asyncio.sleep(pause)
