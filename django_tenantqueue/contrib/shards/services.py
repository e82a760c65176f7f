"""Pins: the database of a tenant, where it is not that of its hash.

Each database has a copy of all pins. The one of the tenant's hash is written last, since processes
read this copy: they see a pin when all copies have it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping

from django.db import connections, transaction
from django.db.models import F

from ...batch_sizes import REMEMBERED_SECONDS
from ...calls.options import check_tenant
from ...exceptions import InvalidOption, InvalidState, Unsupported
from ...models import TenantQueue
from ...queries.enqueue import in_test_case
from .models import Shard, ShardMove, ShardPin
from .reach import first_rows, reaching
from .routes import DOWN, aliases, are_sharded, forget_pins, pins_of, ranking_of


def pin_tenant(tenant: str, alias: str) -> None:
    """Keep the jobs of a tenant in the database `alias`. Takes a second.

    It returns when all processes have read the pin, so jobs of the tenant may follow.

    Choose the database before the first job of the tenant. Raises InvalidState when the tenant has
    rows in another database, or gets some meanwhile. The pin is then taken back, unless the tenant
    has queues in both. Raises InvalidOption for an unknown alias or no tenant, and Unsupported
    inside a transaction, or when one of the databases is down.
    """
    check_usable(tenant)
    if alias not in aliases():
        raise InvalidOption(
            f"{alias!r} is not in TENANTQUEUE['SHARDS']['DATABASES'], which has "
            f"{', '.join(aliases())}"
        )
    _check_empty(tenant, alias)
    number = list(aliases()).index(alias)
    for copy in _copies(tenant):
        write_pin(copy, tenant, number)
    wait_for_processes()
    try:
        _check_empty(tenant, alias)  # jobs may have come while the pin was not yet known
    except InvalidState:
        if not TenantQueue.objects.using(alias).filter(tenant=tenant).exists():
            for copy in _copies(tenant):
                forget_pin(copy, tenant)
        raise


def unpin_tenant(tenant: str) -> bool:
    """Remove the pin of a tenant; return whether there was one.

    Takes a second. Raises InvalidState when the tenant has rows in another database than that of
    its hash, and Unsupported inside a transaction, or when one of the databases is down.
    """
    check_usable(tenant)
    _check_empty(tenant, aliases()[ranking_of(tenant, len(aliases()))[0]])
    removed = False
    for copy in _copies(tenant):
        removed |= forget_pin(copy, tenant)
    wait_for_processes()
    return removed


def forget_pin(alias: str, tenant: str) -> bool:
    """Remove one copy of a pin; return whether there was one."""
    with transaction.atomic(using=alias):
        removed, _ = ShardPin.objects.using(alias).filter(tenant=tenant).delete()
        if removed:
            raise_version(alias)
    return bool(removed)


def list_pins() -> dict[str, str]:
    """Return the pinned tenants with the aliases of their databases.

    It reads the copy of the first database that works.
    """
    found = aliases()
    failure: Exception | None = None
    for alias in found:
        rows = ShardPin.objects.using(alias).order_by("tenant").values_list("tenant", "shard")
        try:
            return {tenant: found[number] for tenant, number in rows if number < len(found)}
        except DOWN as error:
            failure = failure or error
    assert failure is not None
    raise failure


def check_usable(tenant: str) -> None:
    """Check that pins can be written. Raises InvalidOption, InvalidState and Unsupported."""
    if not are_sharded():
        raise Unsupported("TENANTQUEUE['SHARDS']['DATABASES'] has fewer than two aliases: add some")
    if not check_tenant("tenant", tenant):
        raise InvalidOption("tenant='': jobs without a tenant are in the first database")
    for number, alias in enumerate(aliases()):
        with reaching(alias):
            connections[alias].ensure_connection()
            pins_of(alias, number)  # raises what is not set up
        if connections[alias].in_atomic_block and not in_test_case(connections[alias]):
            raise Unsupported(
                f"a transaction is open in {alias!r}, and others read a pin only after its commit: "
                "pin the tenant before the transaction"
            )


def _check_empty(tenant: str, alias: str) -> None:
    for other in aliases():
        if ShardMove.objects.using(other).filter(tenant=tenant).exists():
            raise InvalidState(
                f"tenant {tenant!r} is being moved: complete the move, or cancel it, first"
            )
        if other == alias:
            continue
        if (rows := first_rows(tenant, other)) is not None:
            raise InvalidState(
                f"tenant {tenant!r} has {rows} in the database {other!r}: the database of a tenant "
                "is chosen before its first job, limit, schedule or rule"
            )


def note_switch(using: str, queue_ids: Collection[int], columns: Mapping[str, bool]) -> None:
    """Note in the moves of the queues' tenants what these queues are reset to.

    Locks the rows of the moves. A move, too, locks its row before the queues.
    """
    queues = TenantQueue.objects.using(using).filter(pk__in=queue_ids).order_by()
    moves = ShardMove.objects.using(using).filter(tenant__in=queues.values("tenant"))
    for move in moves.order_by("tenant").select_for_update():
        for queue_id, state in move.queues.items():
            if state.get("id", int(queue_id)) in queue_ids:
                state.update(columns)
        move.save(using=using, update_fields=["queues"])


def _copies(tenant: str) -> Iterator[str]:
    """Yield the databases in the order in which a pin is written."""
    found = aliases()
    yield from (found[number] for number in reversed(ranking_of(tenant, len(found))))


def wait_for_processes() -> None:
    """Wait until no process uses what it read before. In a TestCase each enqueue reads again."""
    if not in_test_case(connections[aliases()[0]]):
        time.sleep(REMEMBERED_SECONDS)
    forget_pins()


def write_pin(copy: str, tenant: str, number: int) -> None:
    """Write one copy of a pin."""
    with transaction.atomic(using=copy):
        ShardPin.objects.using(copy).update_or_create(tenant=tenant, defaults={"shard": number})
        raise_version(copy)


def raise_version(alias: str) -> None:
    """Let processes read the pins of this database again."""
    Shard.objects.using(alias).update(version=F("version") + 1)
