"""The database of a tenant, and of an id.

A tenant without a pin is in the database with the highest hash of its number and the tenant
(rendezvous hashing): another database takes over only its own share of the tenants.

A process reads a copy of the pins at most once a second: the one in the database of the tenant's
hash. While that database is down, the copy that was read last counts, else the next database's. So
the enqueue of a tenant without a pin opens no other database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from time import monotonic

from django.db import InterfaceError, OperationalError, ProgrammingError, connections
from django.db.models import Model
from django.utils.connection import ConnectionDoesNotExist

from ...batch_sizes import REMEMBERED, REMEMBERED_SECONDS
from ...conf import main_database, settings_of
from ...exceptions import Unsupported
from ...models import ConcurrentJobMonitor, Job
from ...queries.base import fetch
from ...queries.enqueue import in_test_case
from ...schema import missing_table
from .settings import MOST, ShardSettings

FIRST_ID = 2**40
"""Ids below belong to the first database: it gave them before it was one of several."""
DOWN_SECONDS = 5.0
"""Time until a database that was down is asked for its pins again."""
DOWN = OperationalError, InterfaceError
SETUP = (
    "run `manage.py tenantqueue shards setup` (a TransactionTestCase needs it in setUp(), for each "
    "test)"
)


@dataclass(slots=True)
class Known:
    """The pins of a database, as this process knows them."""

    until: float = 0.0
    version: int | None = None
    pins: Mapping[str, int] = field(default_factory=dict)
    has_moves: bool = False
    error: str = ""
    """Why it could not be read, if it was never read."""


_known: dict[str, Known] = {}


def aliases() -> Sequence[str]:
    """Return the aliases of all shards, by their numbers. One alias: there are none."""
    return settings_of(ShardSettings).databases or (main_database(),)


def are_sharded() -> bool:
    """Whether jobs are in several databases."""
    return len(settings_of(ShardSettings).databases) > 1


def shard_of_id(row_id: int, *, is_monitor: bool = False) -> str:
    """Return the database of a job or a monitor of that id: the one that has given the id.

    After the first move of a tenant, each look-up reads this database. If it has no such row, the
    others are read. Raises Unsupported for an id of a database that SHARDS does not have.
    """
    found = aliases()
    number = row_id % MOST if row_id >= FIRST_ID and len(found) > 1 else 0
    if number >= len(found):
        raise Unsupported(
            f"the id {row_id} is of shard {number}, and TENANTQUEUE['SHARDS']['DATABASES'] has "
            f"only {', '.join(found)}"
        )
    own = found[number]
    if len(found) > 1 and 0 < row_id < 2**63 and _has_moves(own, number):
        model = ConcurrentJobMonitor if is_monitor else Job
        return _search((own, *(alias for alias in found if alias != own)), model, row_id)
    return own


def _has_moves(alias: str, number: int) -> bool:
    try:
        return _known_of(alias, number).has_moves
    except (*DOWN, Unsupported, ConnectionDoesNotExist):
        return False


def _search(among: Sequence[str], model: type[Model], row_id: int) -> str:
    """Return the first database that has the row; else one that is down, else the first one."""
    down = ""
    for alias in among:
        try:
            if model._default_manager.using(alias).filter(pk=row_id).exists():
                return alias
        except DOWN:
            down = down or alias
    return down or among[0]


def shard_of(tenant: str) -> str:
    """Return the database of a tenant's jobs. The first one has those without a tenant.

    Raises Unsupported before `tenantqueue shards setup`, and Django's OperationalError when no
    database can be asked.
    """
    found = aliases()
    if len(found) < 2 or not tenant:
        return found[0]
    number = number_of(tenant)
    if number >= len(found):
        raise Unsupported(
            f"tenant {tenant!r} is pinned to shard {number}, and "
            f"TENANTQUEUE['SHARDS']['DATABASES'] has only {', '.join(found)}"
        )
    return found[number]


def number_of(tenant: str) -> int:
    """Return the number of a tenant's database, which SHARDS need not have."""
    found = aliases()
    ranking = ranking_of(tenant, len(found))
    failure = None
    for number in ranking:
        try:
            return pins_of(found[number], number).get(tenant, ranking[0])
        except DOWN as error:
            failure = failure or error
    assert failure is not None
    raise failure


@lru_cache(maxsize=REMEMBERED)
def ranking_of(tenant: str, count: int) -> tuple[int, ...]:
    """Return the numbers of `count` databases: the first is that of the tenant's hash."""

    def weight(number: int) -> bytes:
        text = f"{number}\0{tenant}".encode(errors="surrogatepass")
        return blake2b(text, digest_size=8).digest()

    return tuple(sorted(range(count), key=weight, reverse=True))


def pins_of(alias: str, number: int) -> Mapping[str, int]:
    """Return the pinned tenants with their numbers, as a database has them.

    In a Django TestCase they are read each time. Raises Unsupported for a database that is not set
    up with this number, and Django's OperationalError when it is down.
    """
    return _known_of(alias, number).pins


def _known_of(alias: str, number: int) -> Known:
    if in_test_case(connections[alias]):
        return _read(alias, number, None)
    known = _known.get(alias)
    if known is not None and monotonic() < known.until:
        if known.error:
            raise OperationalError(known.error)
        return known
    try:
        found = _read(alias, number, known)
    except DOWN as error:
        connections[alias].close_if_unusable_or_obsolete()  # else it stays broken in a loop
        found = known or Known()
        found.until = monotonic() + DOWN_SECONDS
        if found.version is None:
            found.error = str(error)
            _known[alias] = found
            raise
    _known[alias] = found
    return found


def _read(alias: str, number: int, known: Known | None) -> Known:
    version = -1 if known is None or known.version is None else known.version
    # not by the ORM: assertNumQueries would count a read that comes once a second
    try:
        rows = fetch(alias, "read_pins", {"known_version": version})
    except ProgrammingError as error:
        if missing_table(error) is None:
            raise
        raise not_migrated(alias) from error
    if not rows:
        raise Unsupported(f"the database {alias!r} is not set up as a shard: {SETUP}")
    if rows[0][0] != number:
        raise Unsupported(
            f"the database {alias!r} is shard {rows[0][0]}, and "
            f"TENANTQUEUE['SHARDS']['DATABASES'] has it as number {number}: keep the order of the "
            "aliases"
        )
    until = monotonic() + REMEMBERED_SECONDS
    if known is not None and rows[0][1] == version:
        return Known(until, version, known.pins, known.has_moves)
    pins = {tenant: shard for *_, tenant, shard in rows if tenant is not None}
    return Known(until, int(rows[0][1]), pins, bool(rows[0][2]))


def not_migrated(alias: str) -> Unsupported:
    """Return the error about a database without tables."""
    return Unsupported(
        f"the database {alias!r} lacks tables: run `manage.py migrate --database {alias}`"
    )


def forget_pins() -> None:
    """Read the pins again at the next enqueue of this process."""
    _known.clear()
