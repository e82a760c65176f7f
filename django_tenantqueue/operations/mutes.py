"""Muting the problems of the fleet: pages and commands fold them until a time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from ..calls.options import check_moment
from ..exceptions import InvalidOption
from ..features import LONGEST_KEY
from ..models import Change, Mute
from ..models.mute import MuteQuerySet
from ..status.conditions import conditions
from ..text import clean_text
from .actor import current_actor
from .changes import Edit, record_rows

Object = tuple[str | None, str]
"""The tenant (None: every one) and the key of an object. An empty key is every object."""
LONGEST_REASON = 500


def read_end(until: Any) -> datetime:
    """Return when a mute ends: a moment, or a time from now. Raises InvalidOption for the past."""
    moment = check_moment("until", until)
    now = timezone.now()
    if isinstance(moment, timedelta):
        moment = now + moment
    if moment <= now:
        raise InvalidOption(f"until={until!r}: it must be in the future")
    return moment


def read_reason(reason: Any) -> str:
    """Return the reason as it is stored. Raises InvalidOption for none, and for a long one."""
    text = clean_text(reason).strip() if isinstance(reason, str) else ""
    if not text or len(text) > LONGEST_REASON:
        raise InvalidOption(
            f"reason={str(reason)[:50]!r}: say why, in at most {LONGEST_REASON} characters"
        )
    return text


def check_code(code: str) -> str:
    """Return the code of a condition of the fleet. Raises InvalidOption for another text."""
    known = [str(condition.code) for condition in conditions() if condition.find is not None]
    if code not in known:
        near = "".join(f" Did you mean {one!r}?" for one in get_close_matches(code, known, n=1))
        raise InvalidOption(f"{code!r} is no problem.{near} Problems: {', '.join(known)}")
    return code


def mute(using: str, code: str, objects: Iterable[Object], *, until: Any, reason: str) -> list[int]:
    """Mute a condition of some objects; return the ids of the rows.

    A mute of the same object gets the new time, reason and actor. Raises InvalidOption.
    """
    check_code(code)
    end, why = read_end(until), read_reason(reason)
    rows = [
        Mute(
            code=code,
            tenant=tenant,
            name=clean_text(key)[:LONGEST_KEY],
            until=end,
            reason=why,
            actor=current_actor().name,
        )
        for tenant, key in dict.fromkeys(objects)
    ]
    with transaction.atomic(using=using):
        made = Mute.objects.using(using).bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["code", "tenant", "name"],
            update_fields=["until", "reason", "actor", "made_at"],
        )
        record_rows(using, Change.Action.MUTE, made, Edit({}, {"until": end, "reason": why}))
    return [row.pk for row in made]


def unmute(using: str, rows: MuteQuerySet) -> list[int]:
    """End mutes, in a transaction; return the ids of those that had not ended."""
    with transaction.atomic(using=using):
        found = list(rows.using(using).running().order_by("pk").select_for_update())
        ids = [row.pk for row in found]
        Mute.objects.using(using).filter(pk__in=ids).delete()
        record_rows(using, Change.Action.UNMUTE, found, Edit({}, {}))
    return ids


def prune_mutes(using: str) -> int:
    """Delete the mutes that have ended; return how many."""
    return Mute.objects.using(using).filter(until__lte=Now()).delete()[0]
