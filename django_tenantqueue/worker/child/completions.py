"""Ended jobs whose ends are not stored yet."""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import psycopg

from ...conf import get_settings
from ...exceptions import InvalidResult
from ...execution.job_log import about_id
from ...queries import round_trip as round_trip_queries
from ...queries.finish import Failed, Finished
from ...queries.follow_ups import FollowUp
from ...queries.round_trip import Exchange
from ...states import State
from ...stored_error import stored_error

logger = logging.getLogger("django_tenantqueue")

GROUP_SECONDS = 0.005
"""How long a lone completion waits for others, and the pause after a claim that took all."""
RETRY_SECONDS = 0.1
"""Wait before a completion is retried after a locked row or a deadlock."""
PROGRAM_LIMIT = "54"
"""SQLSTATE class of values that are too large or too complex for the server."""


class Refusal(Finished):
    """The error that is stored instead of a result that the server rejected."""

    __slots__ = ()


class Completions:
    """Collects completions; hands them out for one transaction, or stores them one by one."""

    def __init__(self, worker_id: int) -> None:
        self._worker_id = worker_id
        self._finished: list[Finished] = []
        self._failed: list[Failed] = []
        self._held_back: deque[tuple[float, Finished | Failed]] = deque()

    def __len__(self) -> int:
        return len(self._finished) + len(self._failed)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to store, now or later."""
        return not (self._finished or self._failed or self._held_back)

    @property
    def next_try_at(self) -> float | None:
        """When the next retry is due (monotonic time); None when there is none."""
        return self._held_back[0][0] if self._held_back else None

    def add(self, record: Finished | Failed) -> None:
        """Take a completion."""
        if isinstance(record, Finished):
            self._finished.append(record)
        else:
            self._failed.append(record)

    def take_held_back(self, now: float) -> None:
        """Take the completions that are due for a retry."""
        while self._held_back and self._held_back[0][0] <= now:
            self.add(self._held_back.popleft()[1])

    def take(self) -> tuple[list[Finished], list[Failed]]:
        """Return the completions, sorted by id, and forget all.

        Of two of one job the later claim alone can stand.
        """
        finished = {r.id: r for r in sorted(self._finished, key=_claim)}
        failed = {r.id: r for r in sorted(self._failed, key=_claim)}
        self._finished, self._failed = [], []
        return list(finished.values()), list(failed.values())

    def put_back(self, finished: list[Finished], failed: list[Failed]) -> None:
        """Take back completions that could not be sent."""
        self._finished += finished
        self._failed += failed

    def claims(self) -> set[tuple[int, int]]:
        """Return the claims (id, claim_seq) whose ends are not stored yet."""
        records = [*self._finished, *self._failed, *(record for _, record in self._held_back)]
        return {(record.id, record.claim_seq) for record in records}

    def store_singly(
        self,
        connection: psycopg.Connection[Any],
        finished: list[Finished],
        failed: list[Failed],
    ) -> tuple[list[Finished | Failed], list[FollowUp]]:
        """Store completions one by one, so that a bad one affects no other.

        Return those stored, and the jobs that these enqueued.
        """
        records: list[Finished | Failed] = [*finished, *failed]
        stored: list[Finished | Failed] = []
        follow_ups: list[FollowUp] = []
        for record in records:
            try:
                answer = round_trip_queries.exchange(
                    connection,
                    self._worker_id,
                    finished=[record] if isinstance(record, Finished) else (),
                    failed=[record] if isinstance(record, Failed) else (),
                    max_errors=get_settings().max_errors,
                )
            except psycopg.Error as error:
                self._not_stored(record, error)
            else:
                stored.append(record)
                follow_ups += answer.follow_ups
                self.look_after([record], answer)
        return stored, follow_ups

    def _not_stored(self, record: Finished | Failed, error: psycopg.Error) -> None:
        """Replace a result that the server rejects by an error; retry after other failures."""
        if is_final(error) and not isinstance(record, Refusal):
            logger.error(
                "job %s: PostgreSQL rejected its result: %s",
                record.id,
                error,
                extra=about_id(record.id),
            )
            self._finished.append(_refused(record, error))
            return
        # rarely if even the error in its place was refused
        pause = RETRY_SECONDS * (50 if isinstance(record, Refusal) else 1)
        logger.warning(
            "job %s: storing its result failed, retrying: %s",
            record.id,
            error,
            extra=about_id(record.id),
        )
        self._held_back.append((time.monotonic() + pause, record))
        self._held_back = deque(sorted(self._held_back, key=lambda held: held[0]))

    def look_after(self, ends: Sequence[Finished | Failed], answer: Exchange) -> None:
        """Handle the completions that were not stored.

        The job of a failed run was cancelled in the meantime, or lost: it is not retried. Other
        claims were lost.
        """
        if len(answer.finished) + len(answer.rescheduled) == len(ends):
            return
        for record in ends:
            if record.id in answer.finished or record.id in answer.rescheduled:
                continue
            if isinstance(record, Failed):
                self.add(record.as_cancelled())
            else:
                logger.warning(
                    "job %s: the claim was lost, so its result was not stored",
                    record.id,
                    extra=about_id(record.id),
                )


def _claim(record: Finished | Failed) -> tuple[int, int]:
    return record.id, record.claim_seq


def is_final(error: psycopg.Error) -> bool:
    """Whether a retry of a completion would fail in the same way.

    A missing partition of the history is an IntegrityError without a constraint; maintenance makes
    the partition.
    """
    if isinstance(error, psycopg.IntegrityError):
        return bool(error.diag.constraint_name or error.diag.column_name)
    return isinstance(error, psycopg.DataError) or (error.sqlstate or "")[:2] == PROGRAM_LIMIT


def _refused(record: Finished | Failed, error: psycopg.Error) -> Refusal:
    message = f"PostgreSQL rejected the result, error or statistics of this run: {error}"
    described = stored_error(InvalidResult, message, attempt=None)
    age = record.age_seconds if isinstance(record, Finished) else None
    return Refusal(
        record.id,
        record.claim_seq,
        State.ERROR.value,
        age,
        extra=json.dumps({"error": described}),
        gates=record.gates,
    )
