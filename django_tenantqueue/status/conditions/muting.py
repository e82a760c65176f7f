"""Which objects of a condition operators have muted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from ...features import Muted, Named
from ...models import Mute

Key = tuple[datetime, str, str]
"""Until when objects are muted, by whom and why."""


def read_mutes(using: str, tenants: Collection[str] | None, most: int) -> list[Mute]:
    """Return the mutes that have not ended, the last to end first.

    `tenants`: only those of one of these tenants. None: all.
    """
    rows = Mute.objects.using(using).running()
    if tenants is not None:
        rows = rows.filter(tenant__in=sorted(tenants))
    return list(rows.order_by("-until", "-pk")[:most])


def covers(mute: Mute, code: str, one: Named) -> bool:
    """Return whether a mute is about this object with the condition."""
    return mute.code == code and mute.tenant in (None, one.tenant) and mute.name in ("", one.key)


def by_mute(
    code: str, objects: Iterable[Named], mutes: Sequence[Mute]
) -> list[tuple[Muted | None, list[Named]]]:
    """Return the objects in groups: those that are not muted, and those muted together."""
    groups: dict[Key | None, tuple[list[Named], set[int]]] = {}
    for one in objects:
        mute = next((mute for mute in mutes if covers(mute, code, one)), None)
        key = None if mute is None else (mute.until, mute.actor, mute.reason)
        names, ids = groups.setdefault(key, ([], set()))
        names.append(one)
        if mute is not None:
            ids.add(mute.pk)
    return [
        (None if key is None else Muted(*key, sorted(ids)), names)
        for key, (names, ids) in groups.items()
    ]
