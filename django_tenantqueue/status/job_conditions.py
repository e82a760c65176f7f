"""Filters that compare columns of jobs: from their names and texts to a JobFilter."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, time, timedelta
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..calls.searchable_option import key_of
from ..calls.sources import registered_tasks
from ..exceptions import InvalidArgument
from ..gate_keys import gate_key
from ..models import TenantQueue
from ..queries.lists import NEWEST, JobFilter, find_first_created
from ..states import ACTIVE, EARLIEST, FINAL, LATEST, State
from ..text import read_number

TIMES: dict[str, Any] = {
    "created_from": _("created from"),
    "created_to": _("created before"),
    "ended_from": _("ended from"),
    "ended_to": _("ended before"),
}
CONDITIONS: dict[str, Any] = {
    **TIMES,
    "label": _("label"),
    "argument": _("argument"),
    "created_by": _("created by"),
    "limit_user": _("user limit"),
    "session": _("session"),
    "worker": _("worker"),
    "priority": _("priority"),
    "error": _("error class"),
}
"""The filters, by their names in addresses."""
AGO = re.compile(r"(\d{1,5})([mhd])")
"""A time before now: 30m, 24h, 7d."""
UNITS = {"m": "minutes", "h": "hours", "d": "days"}
CLOCKS_DIFFER = timedelta(seconds=5)
"""An id may be lower than that of a job that was created this much earlier."""


def read_moment(text: str) -> datetime:
    """Return the time that a filter names: a date, with or without a time of day, or 24h.

    Without an offset, it is in the current time zone. Raises InvalidArgument.
    """
    now = timezone.now()
    try:
        if ago := AGO.fullmatch(text):
            found: datetime | None = now - timedelta(**{UNITS[ago[2]]: int(ago[1])})
        elif (day := parse_date(text)) is not None:
            found = datetime.combine(day, time.min)
        else:
            # "+" of an offset is a blank in an address that was not encoded
            found = parse_datetime(re.sub(r" (\d\d:?\d\d)$", r"+\1", text, count=1))
        if found is not None and timezone.is_naive(found):
            found = timezone.make_aware(found)
        if found is not None and EARLIEST <= found < LATEST:
            return found
    except (ValueError, OverflowError):
        pass  # such as the 31st of February
    example = timezone.localtime(now).strftime("%Y-%m-%d %H:%M")
    said = gettext("%(text)r is not a time: give one like %(example)s, or 24h for 24 hours ago.")
    raise InvalidArgument(said % {"text": text, "example": example})


def absolute(filters: Mapping[str, str]) -> dict[str, str]:
    """Return the filters with times that mean the same later and elsewhere.

    Raises InvalidArgument.
    """
    return {
        name: read_moment(text).isoformat() if name in TIMES and text else text
        for name, text in filters.items()
    }


def read_conditions(
    using: str, given: Mapping[str, str], asked: JobFilter, *, tenant: str | None
) -> JobFilter:
    """Return `asked` narrowed by those of the filters that are CONDITIONS.

    `tenant`: that of sessions and users; None: it was not given. Raises InvalidArgument.
    """
    times: dict[str, Any] = {name: read_moment(given[name]) for name in TIMES if name in given}
    keys: dict[str, Any] = {
        name: gate_key(_tenant_of_key(using, tenant), given[name])
        for name in ("session", "limit_user")
        if name in given
    }
    for start, end in (("created_from", "created_to"), ("ended_from", "ended_to")):
        if start in times and end in times and times[start] >= times[end]:
            raise InvalidArgument(gettext("The time “from” must be earlier than “before”."))
    found = replace(
        asked,
        **times,
        label=given.get("label"),
        created_by=given.get("created_by", asked.created_by),
        argument=_argument(given["argument"]) if "argument" in given else None,
        error=given.get("error"),
        worker=_number(given, "worker", 2**63 - 1),
        priority=_number(given, "priority", 2**15 - 1),
        **keys,
    )
    return _within_ids(using, _in_states(found))


def _argument(text: str) -> str:
    name, equals, value = text.partition("=")
    name, value = name.strip(), value.strip()
    if not equals or not name or not value:
        raise InvalidArgument(
            gettext("%r is not an argument with its value: give one like invoice=4711.") % text
        )
    if name not in searchable_names():
        said = gettext(
            "No task declares the argument %r as searchable. The search finds texts in all "
            "arguments."
        )
        raise InvalidArgument(said % name)
    return key_of(name, value)


def searchable_names() -> list[str]:
    """Return the arguments that tasks of this process declare searchable."""
    return sorted({name for task in registered_tasks().values() for name in task.source.searchable})


def _number(given: Mapping[str, str], name: str, most: int) -> int | None:
    if name not in given:
        return None
    text = given[name].strip()
    number = read_number(text.removeprefix("#").removeprefix("-"))
    if number is None or number > most:
        said = gettext("%(filter)s: %(text)r is not a number.")
        raise InvalidArgument(said % {"filter": CONDITIONS[name], "text": given[name]})
    return -number if text.startswith("-") else number


def _tenant_of_key(using: str, tenant: str | None) -> str:
    """Return the tenant of a session or a user: the only one there is, if none was given."""
    if tenant is not None:
        return tenant
    queues = TenantQueue.objects.using(using).order_by()
    first = queues.values_list("tenant", flat=True).first()
    if first is not None and queues.exclude(tenant=first).exists():
        raise InvalidArgument(gettext("Add the tenant: sessions and users belong to tenants."))
    return first or ""


def _in_states(asked: JobFilter) -> JobFilter:
    """Return the filter without states that its other conditions exclude."""
    states = frozenset(State) if asked.states is None else asked.states
    if asked.ended_from is not None or asked.ended_to is not None:
        states &= FINAL
    if asked.worker is not None:
        states &= ACTIVE | FINAL
    if asked.error is not None:
        states -= {State.SUCCESS}  # what it has failed with before does not count
    return asked if states == (asked.states or frozenset(State)) else replace(asked, states=states)


def _within_ids(using: str, asked: JobFilter) -> JobFilter:
    """Return the filter with the range of ids of jobs that were created in its range of times.

    A job was created before it ended.
    """
    after, before = asked.after, asked.before
    if asked.created_from is not None:
        first = find_first_created(using, asked.created_from - CLOCKS_DIFFER)
        after = max(after, NEWEST if first is None else first)
    ends = [end for end in (asked.created_to, asked.ended_to) if end is not None]
    if ends:
        first = find_first_created(using, min(ends) + CLOCKS_DIFFER)
        before = min(before, NEWEST if first is None else first)
    return replace(asked, after=after, before=before)


def only_tenant(tenants: Collection[str] | None) -> str | None:
    """Return the tenant of a user who sees one alone; None: there are more."""
    return next(iter(tenants)) if tenants is not None and len(tenants) == 1 else None
