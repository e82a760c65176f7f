"""Moves a tenant from one database to another while its jobs are enqueued and run.

Steps, each repeatable. Which one is next is seen from the rows of ShardMove:

- None: `_begin` pauses the queues. Row in the source. Running jobs end; enqueues go on.
- In the source: `_close` makes the queues reject jobs. Older transactions end, whose enqueues may
  still commit. Then `_carry` is one transaction in each database. That of the target commits first:
  all rows, in queues that are paused and reject jobs, and a row of ShardMove. That of the source
  deletes its rows and its row of ShardMove, and pins the tenant to the target. This commit is the
  switch.
- In both: the mover died between these two commits. What the target has does not count, and is
  deleted by the next `_carry`.
- In the target: `_open` writes the other pins and resets the queues. `_follow` carries the finished
  jobs that are left, and deletes the queues of the source and the row.

So a job is in one database that may run it, at any moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, LiteralString

from django.db import connections, transaction
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL
from psycopg import Cursor

from ...exceptions import InvalidOption, InvalidState, Unsupported
from ...models import Change, Job, TenantQueue
from ...operations.changes import Entry
from ...operations.erasure_elsewhere import find_bulk_jobs
from ...operations.gates import wake_later
from ...operations.queues import forget_queues
from ...queries.base import array, fetch, ready_connection
from ...queries.enqueue import in_test_case
from .carrying import Carrier, delete_all, moved_changes
from .models import Shard, ShardMove, ShardPin
from .reach import first_rows
from .routes import FIRST_ID, aliases, shard_of
from .services import check_usable, raise_version, wait_for_processes, write_pin
from .settings import MOST

STOP_SECONDS = 10.0
"""Longest time for which enqueues are rejected because older transactions have not ended."""
POLL_SECONDS = 0.1
SAY_SECONDS = 10.0
"""Time after which the mover says again what it waits for."""
SPARE_IDS = MOST * 1_000_000
"""Ids that are left out when those of the target have to rise."""
NO_TIMEOUT = (
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL lock_timeout = 0",
    "SET LOCAL idle_in_transaction_session_timeout = 0",
)
LOCK = "SELECT pg_advisory_xact_lock('tenantqueue_shardmove'::regclass::oid::int, hashtext(%s))"

Say = Callable[[str], object]


class _Gone(Exception):
    """The source has no row of the move: it was switched, or cancelled by another process."""


def move_tenant(
    tenant: str,
    alias: str,
    *,
    wait: float | timedelta | None = None,
    max_stop: float | timedelta = STOP_SECONDS,
    tell: Say = lambda text: None,
) -> None:
    """Move a tenant and all its rows to the database `alias`, or complete an interrupted move.

    It waits until the tenant's running jobs have ended, for up to `wait`, seconds or a timedelta;
    None: without a limit. Waiting jobs start again after the move. While the rows are copied, an
    enqueue raises TenantMoving. Before the copy, all transactions have to end that are open in the
    database at that moment. If one does not end within `max_stop`, the tenant's jobs can be
    enqueued again, and the move tries again after its end. `tell` is called with what is done, and
    with what is waited for.

    It can be interrupted at any time, and called again. Raises InvalidState for a tenant that is
    there already, that another move is about, or that has rows in both databases, when the move was
    cancelled meanwhile, or when running jobs have not ended. Then its queues stay paused: call it
    again, or cancel_move(). Raises InvalidOption for an unknown alias or no tenant, and Unsupported
    inside a transaction, or when one of the databases is down.
    """
    _check(tenant)
    if alias not in aliases():
        raise InvalidOption(
            f"{alias!r} is not in TENANTQUEUE['SHARDS']['DATABASES'], which has "
            f"{', '.join(aliases())}"
        )
    end = None if wait is None else time.monotonic() + _seconds(wait)
    source, is_switched = _find(tenant, alias)
    if source is None:
        source = _begin(tenant, alias, tell)
    move = _Move(tenant, source, alias, tell)
    if not is_switched:
        try:
            move.switch(end, _seconds(max_stop))
        except _Gone:
            move.check_switched()
    move.open()
    move.follow()


def _check(tenant: str) -> None:
    check_usable(tenant)
    if any(in_test_case(connections[alias]) for alias in aliases()):
        raise Unsupported(
            f"tenant {tenant!r} cannot move inside a TestCase: use a TransactionTestCase"
        )


def _seconds(value: float | timedelta) -> float:
    return value.total_seconds() if isinstance(value, timedelta) else value


def cancel_move(tenant: str) -> bool:
    """Cancel a move that is not switched yet; return whether there was one.

    The queues are reset to what they were. Raises InvalidState for a move that is switched: it can
    only be completed. Raises Unsupported like move_tenant().
    """
    _check(tenant)
    for alias in aliases():
        row = ShardMove.objects.using(alias).filter(tenant=tenant).first()
        if row is not None and aliases()[row.source] == alias:
            with suppress(_Gone):
                _Move(tenant, alias, aliases()[row.target], lambda text: None).cancel()
                return True
    for row in list_moves():
        if row.tenant == tenant:
            raise InvalidState(
                f"tenant {tenant!r} has moved to {aliases()[row.target]!r} already, and the rest "
                "of its rows has to follow: move it again to complete this"
            )
    return False


def list_moves() -> list[ShardMove]:
    """Return the moves that are not completed, of all databases, by tenants."""
    found: dict[str, ShardMove] = {}
    for alias in aliases():
        for row in ShardMove.objects.using(alias).order_by("tenant"):
            found.setdefault(row.tenant, row)
    return [found[tenant] for tenant in sorted(found)]


def _find(tenant: str, alias: str) -> tuple[str | None, bool]:
    """Return the source of a move to `alias` that has begun, and whether it is switched."""
    number = list(aliases()).index(alias)
    rows = {
        other: row
        for other in aliases()
        for row in ShardMove.objects.using(other).filter(tenant=tenant)
    }
    for row in rows.values():
        if row.target != number:
            raise InvalidState(
                f"tenant {tenant!r} is being moved to {aliases()[row.target]!r}: complete that "
                "move, or cancel it, first"
            )
    for row in rows.values():
        source = aliases()[row.source]
        return source, source not in rows
    return None, False


def _begin(tenant: str, alias: str, tell: Say) -> str:
    """Check that the tenant can move, and pause its queues. Return its database."""
    source = shard_of(tenant)
    if source == alias:
        raise InvalidState(
            f"tenant {tenant!r} is in the database {alias!r}: there is nothing to move"
        )
    if Shard.objects.using(alias).first() is None:
        raise InvalidState(f"the database {alias!r} is not set up: run `tenantqueue shards setup`")
    for other in aliases():
        if other != source:
            _check_empty(tenant, other)
    queues = TenantQueue.objects.using(source).filter(tenant=tenant)
    if alias != aliases()[0] and queues.exclude(executor=None).exists():
        raise InvalidState(
            f"tenant {tenant!r} has a queue with an executor, and executors run jobs of "
            f"{aliases()[0]!r} only: tune the queue with executor=None first"
        )
    _Move(tenant, source, alias, tell).blocking_jobs(list(queues.values_list("pk", flat=True)))
    numbers = list(aliases())
    if not all(Shard.objects.using(other).filter(has_moves=True).exists() for other in numbers):
        for other in numbers:
            with transaction.atomic(using=other):
                Shard.objects.using(other).update(has_moves=True)
                raise_version(other)
        wait_for_processes()  # they look for ids in all databases then
    with transaction.atomic(using=source):
        row = ShardMove(
            tenant=tenant, source=numbers.index(source), target=numbers.index(alias), queues={}
        )
        row.save(using=source, force_insert=True)
        _pause(source, row)
    tell(f"the queues of tenant {tenant!r} are paused in {source}")
    return source


def _check_empty(tenant: str, alias: str) -> None:
    if (rows := first_rows(tenant, alias)) is not None:
        raise InvalidState(
            f"tenant {tenant!r} has {rows} in {alias!r}, too: a tenant with rows in two databases "
            "cannot be moved. Delete these first"
        )


def _pause(source: str, row: ShardMove, *, retire: bool = False) -> None:
    """Pause all queues of the source, and note what new ones are reset to."""
    queues = TenantQueue.objects.using(source).filter(tenant=row.tenant)
    ids = []
    for queue in queues.order_by("pk").select_for_update(no_key=True):
        row.queues.setdefault(str(queue.pk), {"paused": queue.paused, "retired": queue.retired})
        ids.append(queue.pk)
    queues.filter(pk__in=ids).update(paused=True, **({"retired": True} if retire else {}))
    row.closed = retire
    row.save(using=source, update_fields=["queues", "closed"])


@contextmanager
def _open_transaction(using: str) -> Iterator[Cursor[Any]]:
    """Yield a cursor in a transaction without timeouts, whatever those of the role are."""
    with transaction.atomic(using=using):
        cursor = Cursor(ready_connection(connections[using]))
        for text in NO_TIMEOUT:
            cursor.execute(text)
        yield cursor


class _Move:
    """A move that has begun."""

    def __init__(self, tenant: str, source: str, target: str, tell: Say) -> None:
        self.tenant = tenant
        self.source, self.target = source, target
        self.tell = tell

    def _rows(self, using: str) -> QuerySet[ShardMove]:
        """Return the row of this move, not of another move of the tenant."""
        source, target = (list(aliases()).index(alias) for alias in (self.source, self.target))
        rows = ShardMove.objects.using(using)
        return rows.filter(tenant=self.tenant, source=source, target=target)

    # until the switch

    def switch(self, end: float | None, max_stop: float) -> None:
        """Wait for running jobs, close the source, and carry all that is needed to the target."""
        while True:
            self._wait(self._blockers, end)
            is_done, older = False, self._nothing
            try:
                versions = self._close()
                older = self._older_transactions()
                self._wait(older, time.monotonic() + max_stop, raises=False)
                if not older() and not self._blockers():
                    is_done = self._carry(versions)
            finally:
                if not is_done:
                    self._reopen()
            if is_done:
                return
            self._wait(older, end)

    def _nothing(self) -> list[str]:
        return []

    def _wait(
        self, blockers: Callable[[], Sequence[str]], end: float | None, *, raises: bool = True
    ) -> None:
        """Wait until there are none. Raises InvalidState after `end`, or returns."""
        said_at, pause, began = 0.0, POLL_SECONDS / 10, time.monotonic()
        while found := blockers():
            now = time.monotonic()
            took = now - began
            text = f"tenant {self.tenant!r} has not moved yet, because of {', '.join(found)}"
            if end is not None and now >= end:
                if not raises:
                    return
                raise InvalidState(f"{text}: try again when these have ended")
            if now - said_at >= SAY_SECONDS:
                self.tell(f"waiting: {text}")
                said_at = now
            time.sleep(max(pause, took * 5))  # looking may read many rows
            pause, began = min(pause * 2, POLL_SECONDS), time.monotonic()

    def _blockers(self) -> list[str]:
        """Return what a move waits for: jobs that run, and those that need both databases."""
        ids = self._queue_ids()
        found = [
            f"running job {job_id}" if is_claimed else f"job {job_id} with follow-ups of others"
            for job_id, is_claimed in self.blocking_jobs(ids)
        ]
        bulk = find_bulk_jobs(self.source, self.tenant, ids, final=False)
        return [*found, *(f"bulk action {job_id}" for job_id in bulk)]

    def blocking_jobs(self, queue_ids: Sequence[int]) -> list[tuple[int, bool]]:
        """Return jobs to wait for, and whether each is claimed.

        Raises InvalidState for jobs that cannot end while the queues are paused.
        """
        rows = fetch(self.source, "list_move_blockers", {"queues": array(queue_ids)})
        if endless := [f"job {job_id}" for job_id, _, cannot_end in rows if cannot_end]:
            raise InvalidState(
                f"tenant {self.tenant!r} has waiting jobs with follow-ups in queues of another "
                f"tenant: {', '.join(endless)}. Move it when these have ended. A move that has "
                "begun has paused their queues: cancel it first"
            )
        return [(job_id, is_claimed) for job_id, is_claimed, _ in rows]

    def _queue_ids(self) -> list[int]:
        rows = TenantQueue.objects.using(self.source).filter(tenant=self.tenant)
        return list(rows.order_by("pk").values_list("pk", flat=True))

    def _close(self) -> dict[int, str]:
        """Let no transaction that begins from now on enqueue a job of the tenant.

        Return the versions of the queues.
        """
        with transaction.atomic(using=self.source):
            _pause(self.source, self._locked(), retire=True)
            return self._versions()

    def _versions(self) -> dict[int, str]:
        """Return the queues of the tenant, each with what another change of its row changes."""
        rows = TenantQueue.objects.using(self.source).filter(tenant=self.tenant).order_by("pk")
        return dict(rows.values_list("pk", RawSQL("xmin::text", [])))

    def _reopen(self) -> None:
        """Let jobs be enqueued again, unless the move is switched. The queues stay paused."""
        with suppress(_Gone), transaction.atomic(using=self.source):
            row = self._locked()
            self._reset(self.source, row, paused=True)
            row.closed = False
            row.save(using=self.source, update_fields=["closed"])

    def _reset(self, using: str, row: ShardMove, *, paused: bool | None = None) -> None:
        for queue_id, state in row.queues.items():
            rows = TenantQueue.objects.using(using).filter(pk=state.get("id", queue_id))
            rows.update(
                retired=state["retired"], paused=state["paused"] if paused is None else paused
            )

    def _locked(self) -> ShardMove:
        """Return the row of the source, locked. Raises _Gone."""
        row = self._rows(self.source).select_for_update().first()
        if row is None:
            raise _Gone
        return row

    def _older_transactions(self) -> Callable[[], list[str]]:
        """Return a function for _wait(): which transactions that are open now have not ended."""
        first = dict(fetch(self.source, "list_open_transactions", {}))

        def left() -> list[str]:
            found = dict(fetch(self.source, "list_open_transactions", {}))
            return [f"the open transaction of {found[name]}" for name in first if name in found]

        return left

    def _carry(self, versions: dict[int, str]) -> bool:
        """Carry the rows in one transaction of each database. False: jobs may have come since.

        `versions`: the queues as they were closed.
        """
        with _open_transaction(self.source) as source:
            row = self._locked()
            of_tenant = TenantQueue.objects.using(self.source).filter(tenant=self.tenant)
            queues = list(of_tenant.order_by("pk").select_for_update())
            ids = array(queue.pk for queue in queues)
            claimed = fetch(self.source, "lock_moving_jobs", {"queues": ids})[0][0]
            if claimed or self._versions() != versions:
                return False
            with _open_transaction(self.target) as target:
                target.execute(LOCK, [self.tenant])  # a mover that died may still be there
                self._delete_copies(target)
                _check_empty(self.tenant, self.target)
                new_ids = self._copy_queues(queues)
                Carrier(source, target, self.source, self.tenant, new_ids).carry_all()
                for queue_id, new_id in new_ids.items():
                    row.queues[str(queue_id)]["id"] = new_id
                copy = ShardMove(
                    tenant=self.tenant,
                    source=row.source,
                    target=row.target,
                    closed=True,
                    queues=row.queues,
                )
                copy.save(using=self.target, force_insert=True)
            row.delete(using=self.source)
            write_pin(self.source, self.tenant, row.target)
        self.tell(f"the waiting jobs of tenant {self.tenant!r} are in {self.target}")
        return True

    def _copy_queues(self, queues: Sequence[TenantQueue]) -> dict[int, int]:
        """Make the queues in the target; return their ids there by those in the source."""
        made = {}
        for queue in queues:
            old_id, created_at = queue.pk, queue.created_at
            queue.pk = None
            queue.save(using=self.target, force_insert=True)
            rows = TenantQueue.objects.using(self.target).filter(pk=queue.pk)
            rows.update(created_at=created_at)
            made[old_id] = queue.pk
        return made

    def _delete_copies(self, target: Cursor[Any]) -> None:
        """Delete what a mover that died has committed in the target. The source has it, too."""
        copy = self._rows(self.target)
        if not copy.exists():
            return
        delete_all(self.target, self.tenant)
        entries = list(moved_changes(self.source, self.tenant).values_list("pk", flat=True))
        target.execute("DELETE FROM tenantqueue_change WHERE id = ANY (%s)", [entries])
        copy.delete()

    def cancel(self) -> bool:
        """Delete what the target has, and reset the queues of the source."""
        with transaction.atomic(using=self.source):
            row = self._locked()
            with _open_transaction(self.target) as target:
                target.execute(LOCK, [self.tenant])
                self._delete_copies(target)
            self._reset(self.source, row)
            row.delete(using=self.source)
            self._wake(self.source)
        return True

    # after the switch

    def check_switched(self) -> None:
        """Raise InvalidState unless another mover has switched the move: the source has the pin."""
        number = list(aliases()).index(self.target)
        pin = ShardPin.objects.using(self.source).filter(tenant=self.tenant, shard=number)
        if not pin.exists():
            raise InvalidState(
                f"the move of tenant {self.tenant!r} to {self.target!r} was cancelled by another "
                "process: move it again if it should be there"
            )

    def open(self) -> None:
        """Send all processes to the target, and let it run and take jobs.

        It holds a lock on the pin in the source: a mover that was stopped does nothing later on.
        """
        rows = self._rows(self.target).filter(closed=True)
        if not rows.exists():
            return
        number = list(aliases()).index(self.target)
        pin = ShardPin.objects.using(self.source).filter(tenant=self.tenant, shard=number)
        with _open_transaction(self.source):
            if not pin.select_for_update().exists() or not rows.exists():
                return
            for copy in aliases():
                if copy != self.source:
                    write_pin(copy, self.tenant, number)
            wait_for_processes()
            forget_queues()
            self._raise_ids(number)
            with transaction.atomic(using=self.target):
                row = rows.select_for_update().get()
                self._reset(self.target, row)
                row.closed = False
                row.save(using=self.target, update_fields=["closed"])
                self._record(row)
                self._wake(self.target)
        self.tell(f"jobs of tenant {self.tenant!r} are enqueued and run in {self.target}")

    def _record(self, row: ShardMove) -> None:
        entry = Entry(self.target, Change.Action.MOVE, Change.Kind.QUEUE, tenant=self.tenant)
        ids = [state["id"] for state in row.queues.values()]
        entry.add(ids, before={"database": self.source}, after={"database": self.target})

    def _raise_ids(self, number: int) -> None:
        """Let new jobs of the target have higher ids than those that came: ids are their order.

        Others take ids meanwhile, but not a million between the read and the write of the sequence.
        """
        last = fetch(self.source, "read_last_id", {})[0][0] or 0
        if last >= FIRST_ID:
            lowest = last - last % MOST + number + SPARE_IDS
            fetch(self.target, "raise_ids", {"last": last, "next": lowest})

    def _wake(self, using: str) -> None:
        for queue in TenantQueue.objects.using(using).filter(tenant=self.tenant, paused=False):
            wake_later(using, self.tenant, queue.name, 1)

    def follow(self) -> None:
        """Carry the finished jobs that are left, and what has come to the source since."""
        row = self._rows(self.target).first()
        if row is None:
            return
        ids = {int(queue_id): state["id"] for queue_id, state in row.queues.items()}
        count = 0
        for condition in ("final", "NOT final", "final"):
            while carried := self._follow_batch(ids, condition):
                count += carried
        self._finish()
        self.tell(f"{count} finished jobs of tenant {self.tenant!r} have followed")

    def _finish(self) -> None:
        """Delete what the source still has, and then the row of the move, under its lock."""
        rows = self._rows(self.target).filter(closed=False)
        with transaction.atomic(using=self.target):
            row = rows.select_for_update().first()
            if row is None:
                return
            with transaction.atomic(using=self.source):
                of_tenant = TenantQueue.objects.using(self.source).filter(tenant=self.tenant)
                ids = [queue.pk for queue in of_tenant.order_by("pk").select_for_update()]
                if Job.objects.using(self.source).filter(queue_id__in=ids).exists():
                    raise InvalidState(
                        f"tenant {self.tenant!r} has jobs in {self.source} that were resumed "
                        "there: move it again when they have ended"
                    )
                delete_all(self.source, self.tenant)
            row.delete(using=self.target)

    def _follow_batch(self, ids: dict[int, int], condition: LiteralString) -> int:
        with (
            _open_transaction(self.source) as source,
            _open_transaction(self.target) as target,
        ):
            target.execute(LOCK, [self.tenant])
            return Carrier(source, target, self.source, self.tenant, ids).carry_batch(condition)
