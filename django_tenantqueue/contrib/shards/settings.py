"""Settings of the shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...exceptions import InvalidOption

MOST = 32
"""The largest number of databases: an id names its database by the remainder of this division."""


@dataclass(frozen=True, slots=True)
class ShardSettings:
    """Field names in capitals are the keys of TENANTQUEUE["SHARDS"]."""

    group: ClassVar[str] = "SHARDS"

    databases: tuple[str, ...] = ()
    """Aliases of all databases that hold jobs. The first is `DATABASE`. The position of an alias is
    its number, from 0, and never changes: add aliases at the end, and remove none. With fewer than
    two aliases the app does nothing.

    One database is enough for most projects."""
    rows_follow_jobs: bool = False
    """True: the project keeps the rows of a tenant in the database of the tenant's jobs. Tasks with
    `atomic=True` are then allowed in all databases. False: only in the first one.

    Most projects keep their rows in one database."""

    def check(self) -> None:
        """Raise InvalidOption for aliases that are repeated, or too many."""
        found = self.databases
        if len(set(found)) < len(found) or len(found) > MOST:
            raise InvalidOption(
                f"TENANTQUEUE['SHARDS']['DATABASES'] is {list(found)!r}: it must be at most {MOST} "
                "different aliases"
            )
