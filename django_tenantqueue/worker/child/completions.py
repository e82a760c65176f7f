"""What has ended and is not stored yet."""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import psycopg

from ...conf import get_settings
from ...exceptions import ResultRefused
from ...execution.current_job import RunningJob
from ...queries import exchange as exchange_queries
from ...queries.exchange import Exchange
from ...queries.finish import Failed, Finished
from ...states import State
from ...stored_error import describe_error, stored_error

logger = logging.getLogger("django_tenantqueue")

RETRY_SECONDS = 0.1
"""Wait before a completion is tried again that a locked row or a deadlock refused."""
REFUSED_RETRY_SECONDS = 5.0
"""The same when what was refused is already the error in place of a refused completion."""
PROGRAM_LIMIT = "54"
"""SQLSTATE class of what is too large or too complex for the server."""


@dataclass(frozen=True, slots=True)
class Refusal(Finished):
    """The error that is stored in place of an end which the server refused."""


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
        """When something that was held back is tried again (monotonic time)."""
        return self._held_back[0][0] if self._held_back else None

    def add(self, record: Finished | Failed) -> None:
        """Take a completion."""
        if isinstance(record, Finished):
            self._finished.append(record)
        else:
            self._failed.append(record)

    def take_held_back(self, now: float) -> None:
        """Take what was held back and is to be tried again."""
        while self._held_back and self._held_back[0][0] <= now:
            self.add(self._held_back.popleft()[1])

    def take(self) -> tuple[list[Finished], list[Failed]]:
        """Return all completions, sorted by id, and forget them."""
        finished, self._finished = sorted(self._finished, key=lambda r: r.id), []
        failed, self._failed = sorted(self._failed, key=lambda r: r.id), []
        return finished, failed

    def put_back(self, finished: list[Finished], failed: list[Failed]) -> None:
        """Take completions again that could not be sent."""
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
    ) -> list[Finished | Failed]:
        """Store completions one by one, so that one that is refused takes no other with it.

        Return those that were stored.
        """
        records: list[Finished | Failed] = [*finished, *failed]
        stored: list[Finished | Failed] = []
        for record in records:
            try:
                exchange_queries.exchange(
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
        return stored

    def _not_stored(self, record: Finished | Failed, error: psycopg.Error) -> None:
        """Put an error in the place of what the server refuses for good; try the rest later."""
        if is_final(error) and not isinstance(record, Refusal):
            logger.error("job %s: its end is refused: %s", record.id, error)
            self._finished.append(_refused(record, error))
            return
        pause = REFUSED_RETRY_SECONDS if isinstance(record, Refusal) else RETRY_SECONDS
        logger.warning("job %s: its end is stored later: %s", record.id, error)
        self._held_back.append((time.monotonic() + pause, record))
        self._held_back = deque(sorted(self._held_back, key=lambda held: held[0]))

    def warn_lost(self, finished: list[Finished], failed: list[Failed], answer: Exchange) -> None:
        """Log the completions that were not stored, since somebody else owns the job now."""
        if len(answer.finished) == len(finished) and len(answer.rescheduled) == len(failed):
            return
        records: list[Finished | Failed] = [*finished, *failed]
        for record in records:
            if record.id not in answer.finished and record.id not in answer.rescheduled:
                logger.warning("job %s: the claim was lost; its end was not stored", record.id)


def ended_early(running: RunningJob, state: State, error: BaseException) -> Finished:
    """Return the end of a job that was never begun."""
    described = describe_error(error, running.attempt)
    return Finished(
        running.id,
        running.claimed.claim_seq,
        state.value,
        None,
        extra=json.dumps({"error": described}),
        gates=running.claimed.gates,
    )


def is_final(error: psycopg.Error) -> bool:
    """Whether the server will say the same of a completion however often it is tried.

    A history leaf that is missing is an IntegrityError of no constraint; maintenance makes it.
    """
    if isinstance(error, psycopg.IntegrityError):
        return bool(error.diag.constraint_name or error.diag.column_name)
    return isinstance(error, psycopg.DataError) or (error.sqlstate or "")[:2] == PROGRAM_LIMIT


def _refused(record: Finished | Failed, error: psycopg.Error) -> Refusal:
    """Return the end of a job whose result or statistics the database did not take."""
    message = f"PostgreSQL refused the result, error or statistics of this run: {error}"
    described = stored_error(ResultRefused, message, attempt=None)
    age = record.age_seconds if isinstance(record, Finished) else None
    return Refusal(
        record.id,
        record.claim_seq,
        State.ERROR.value,
        age,
        extra=json.dumps({"error": described}),
        gates=record.gates,
    )
