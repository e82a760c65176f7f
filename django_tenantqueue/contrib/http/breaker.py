"""Circuit breaker: after `breaker_failures` (settings.py), one job at a time tries an endpoint.

Each process has its own. Other jobs are postponed, without counting an attempt.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ...batch_sizes import REMEMBERED
from ...conf import settings_of
from ...exceptions import Postpone
from .settings import HttpSettings

TRY_SECONDS = 5
"""Seconds from a failed try to the next."""
POSTPONED_SECONDS = (2 * TRY_SECONDS, 4 * TRY_SECONDS)
"""Whole seconds, so that the worker postpones many jobs with one statement."""

Endpoint = tuple[str, str]
"""Tenant, and origin of the URL: one tenant's failures do not stop the jobs of another."""


@dataclass(slots=True)
class _Trouble:
    failures: int = 0
    is_tried: bool = False
    next_at: float = 0.0


@dataclass(slots=True)
class Attempt:
    """One request. `is_healthy`: state of the endpoint; None: unknown."""

    is_healthy: bool | None = None


class Breaker:
    """Counts the failures in a row of each endpoint."""

    def __init__(self) -> None:
        self._troubles: dict[Endpoint, _Trouble] = {}

    @contextmanager
    def attempt(self, endpoint: Endpoint) -> Iterator[Attempt]:
        """Wrap one request. Raises Postpone while another job tries the endpoint."""
        tried = self._admit(endpoint)
        attempt = Attempt()
        try:
            yield attempt
        finally:
            if tried is not None:
                tried.is_tried = False
            if attempt.is_healthy:
                self._troubles.pop(endpoint, None)
            elif attempt.is_healthy is False:
                self._count(endpoint)

    def _admit(self, endpoint: Endpoint) -> _Trouble | None:
        trouble = self._troubles.get(endpoint)
        most = settings_of(HttpSettings).breaker_failures
        if trouble is None or most is None or trouble.failures < most:
            return None
        if trouble.is_tried or time.monotonic() < trouble.next_at:
            raise Postpone(
                f"{endpoint[1]} has failed {trouble.failures} times in a row, so this worker tries "
                "it with one job at a time. This run does not count as an attempt.",
                after=random.randint(*POSTPONED_SECONDS),
            )
        trouble.is_tried = True
        return trouble

    def _count(self, endpoint: Endpoint) -> None:
        if len(self._troubles) >= REMEMBERED and endpoint not in self._troubles:
            self._troubles.pop(next(iter(self._troubles)))
        trouble = self._troubles.setdefault(endpoint, _Trouble())
        trouble.failures += 1
        trouble.next_at = time.monotonic() + TRY_SECONDS
