"""Enqueues the jobs in waves, each portion in one transaction, also while the server is away."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Sequence

from django.db import InterfaceError, OperationalError, connection, transaction

from .plan import Portion
from .tables import IS_ENQUEUED, NOTE_JOBS
from .tasks import KINDS

RETRY_SECONDS = 0.1


class Load(threading.Thread):
    """Enqueues wave after wave, spread over so many seconds.

    A portion and the note of its ids commit together. So after a lost answer the note says whether
    the portion is there, and at the end the notes say what must be found.
    """

    def __init__(self, waves: Sequence[Sequence[Portion]], seconds: float) -> None:
        super().__init__(name="load", daemon=True)
        self._waves = waves
        self._pause = seconds / len(waves)
        self._stopped = threading.Event()
        self.failure: BaseException | None = None
        self.cut = 0
        """Portions that had to be tried again."""
        self.left_out = sum(len(wave) for wave in waves)
        """Portions that are not known to be enqueued."""

    def run(self) -> None:
        begun = time.monotonic()
        number = 0
        try:
            for nth, wave in enumerate(self._waves):
                if self._stopped.wait(max(0.0, begun + nth * self._pause - time.monotonic())):
                    return
                for portion in wave:
                    if not self._insist(number, portion):
                        return
                    number += 1
                    self.left_out -= 1
        except BaseException as error:  # noqa: BLE001 told at the end of the run
            self.failure = error
        finally:
            connection.close()

    def stop(self, timeout: float) -> None:
        """Wait until all is enqueued; leave out what is not there by then."""
        self.join(timeout)
        self._stopped.set()
        self.join()

    def _insist(self, number: int, portion: Portion) -> bool:
        while True:
            try:
                enqueue_portion(number, portion)
                return True
            except (OperationalError, InterfaceError):
                connection.close()
                self.cut += 1
                if self._stopped.wait(RETRY_SECONDS):
                    return False


def enqueue_portion(number: int, portion: Portion) -> None:
    calls: dict[str, list[tuple[float]]] = defaultdict(list)
    for job in portion.jobs:
        calls[job.kind].append((job.milliseconds,))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(IS_ENQUEUED, [number])
        if cursor.fetchone() == (True,):
            return
        for kind, arguments in calls.items():
            ids = KINDS[kind].using(tenant=portion.tenant).enqueue_many(arguments)
            cursor.execute(NOTE_JOBS, [ids, number, kind])
