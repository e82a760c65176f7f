"""Prepares databases as shards: their numbers, their ids, and pins of the tenants that they have.

It can be repeated. Run it before a process uses new settings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from django.db import connections, transaction
from django.db.models import F

from ...exceptions import InvalidState, Unsupported
from ...models import Job, TenantQueue
from .models import Shard, ShardMove, ShardPin
from .routes import FIRST_ID, aliases, are_sharded, forget_pins, ranking_of
from .settings import MOST

OWN = ("tenantqueue_worker_id_seq",)
"""Sequences that stay as they are: a worker's id is a part of the keys of its locks."""
_SEQUENCES = """
SELECT class.relname, sequence.seqincrement, sequence.seqstart, pg_sequence_last_value(class.oid)
FROM pg_sequence AS sequence
JOIN pg_class AS class ON class.oid = sequence.seqrelid
WHERE class.relname LIKE 'tenantqueue\\_%%\\_id\\_seq'
    AND sequence.seqtypid = 'bigint'::regtype
    AND pg_table_is_visible(class.oid)
    AND class.relname <> ALL (%s)
ORDER BY class.relname
"""


class IdSequence(NamedTuple):
    """A sequence that gives ids to the rows of a table."""

    name: str
    increment: int
    start: int
    last: int | None
    """The last id; None: it has given none."""

    def gives(self, number: int) -> bool:
        """Whether all further ids name this database."""
        return self.increment == MOST and self.start == FIRST_ID + number


def _is_of(row_id: int, number: int) -> bool:
    return row_id >= FIRST_ID and row_id % MOST == number


def set_up(say: Callable[[str], object]) -> None:
    """Set up all databases of SHARDS, and say what was done.

    Existing tenants stay in their databases: those that the hash would put elsewhere are pinned.
    Raises InvalidState before anything is written when a database has ids or the number of another
    one, and Unsupported without two databases.
    """
    found = aliases()
    if not are_sharded():
        raise Unsupported("TENANTQUEUE['SHARDS']['DATABASES'] has fewer than two aliases: add some")
    for number, alias in enumerate(found):
        _check(alias, number)
        if move := ShardMove.objects.using(alias).first():
            raise InvalidState(
                f"tenant {move.tenant!r} is being moved: complete the move, or cancel it, first"
            )
    pins = _pins_of_all(found)
    for tenant, homes in sorted(_homes(found).items()):
        at = pins.get(tenant, ranking_of(tenant, len(found))[0])
        if at not in homes:
            pins[tenant] = at = homes[0]
        if len(homes) > 1:
            names = ", ".join(found[number] for number in homes)
            say(
                f"tenant {tenant!r} has queues in {names}: new jobs go to {found[at]}, and the "
                "others still run"
            )
    for number, alias in enumerate(found):
        say(f"{alias}: shard {number}, {_write(alias, number, pins)}")
    forget_pins()


def _check(alias: str, number: int) -> None:
    row = Shard.objects.using(alias).first()
    if row is not None and row.number != number:
        raise InvalidState(
            f"the database {alias!r} is shard {row.number}, and SHARDS has it as number {number}: "
            "keep the order of the aliases, and add others at the end"
        )
    for sequence in _sequences(alias):
        last = sequence.last
        if last is not None and last >= FIRST_ID and not _is_of(last, number):
            raise InvalidState(
                f"{sequence.name} of the database {alias!r} gives ids of shard {last % MOST}, and "
                f"SHARDS has the database as number {number}"
            )
    if number and row is None and Job.objects.using(alias).exists():
        raise InvalidState(
            f"the database {alias!r} has jobs already, with ids of the first database: only the "
            "first database of SHARDS may have jobs before its setup"
        )


def _sequences(alias: str) -> list[IdSequence]:
    with connections[alias].cursor() as cursor:
        cursor.execute(_SEQUENCES, [list(OWN)])
        return [IdSequence(*row) for row in cursor.fetchall()]


def _homes(found: Sequence[str]) -> Mapping[str, list[int]]:
    """Return the numbers of the databases with queues of each tenant."""
    homes: defaultdict[str, list[int]] = defaultdict(list)
    for number, alias in enumerate(found):
        rows = TenantQueue.objects.using(alias).exclude(tenant="").order_by()
        for tenant in rows.values_list("tenant", flat=True).distinct():
            homes[tenant].append(number)
    return homes


def _pins_of_all(found: Sequence[str]) -> dict[str, int]:
    """Return the pins of all copies. The copy in the database of the hash comes first."""
    pins: dict[str, int] = {}
    for number, tenant, shard in _all_pins(found):
        if tenant not in pins or ranking_of(tenant, len(found))[0] == number:
            pins[tenant] = shard
    return pins


def _all_pins(found: Sequence[str]) -> Iterator[tuple[int, str, int]]:
    for number, alias in enumerate(found):
        for tenant, shard in ShardPin.objects.using(alias).values_list("tenant", "shard"):
            yield number, tenant, shard


def _write(alias: str, number: int, pins: Mapping[str, int]) -> str:
    """Write what one database needs, in a transaction; return what was done."""
    changed = 0
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        for sequence in _sequences(alias):
            if not sequence.gives(number):
                name = connections[alias].ops.quote_name(sequence.name)
                cursor.execute(
                    f"ALTER SEQUENCE {name} INCREMENT BY {MOST} "
                    f"START WITH {FIRST_ID + number} RESTART"
                )
                changed += 1
        rows = ShardPin.objects.using(alias)
        stored = dict(rows.values_list("tenant", "shard"))
        rows.bulk_create(
            [
                ShardPin(tenant=tenant, shard=shard)
                for tenant, shard in pins.items()
                if stored.get(tenant) != shard
            ],
            update_conflicts=True,
            unique_fields=["tenant"],
            update_fields=["shard"],
            batch_size=1000,
        )
        if not Shard.objects.using(alias).update(version=F("version") + 1):
            Shard(number=number).save(using=alias, force_insert=True)
    return f"{len(pins)} pinned tenants, {changed} sequences changed"
