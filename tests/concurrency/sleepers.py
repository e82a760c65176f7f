"""A worker that sleeps, for tests of who wakes it."""

from __future__ import annotations

from typing import Any

import psycopg

from django_tenantqueue.models import Worker
from django_tenantqueue.queries import workers as queries
from tests.factories import register_worker


class Sleeper:
    """A worker that has announced its sleep and listens."""

    def __init__(self, db: psycopg.Connection[Any], *, asleep: bool = True, **filters: Any) -> None:
        self.db = db
        self.id = register_worker(db, **filters)
        queries.listen(db, self.id)
        db.execute("LISTEN sentinel")
        if asleep:
            queries.sleep_worker(db, self.id, 60.0)

    def was_notified(self) -> bool:
        """Say whether a notification for this worker came before one that is sent now."""
        self.db.execute("NOTIFY sentinel")
        for notification in self.db.notifies(timeout=10):
            if notification.channel != "sentinel":
                return True
            break
        return False

    @property
    def is_announced(self) -> bool:
        return Worker.objects.get(pk=self.id).sleeping_until is not None
