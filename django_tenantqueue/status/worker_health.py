"""Whether the workers of a machine are well: asked by probes, answered in one line."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db.models.functions import Now

from ..models import Worker
from ..text import number_of
from .figures import duration_text


@dataclass(frozen=True, slots=True)
class Health:
    """The answer, and why."""

    healthy: bool
    reason: str


def judge_file(
    path: str, *, max_age: float, readiness: bool = False, now: float | None = None
) -> Health:
    """Judge a worker by the heartbeat file that its supervisor keeps; the database is not asked.

    It is well while the file is younger than `max_age` seconds. `readiness`: the file must also say
    that the worker takes jobs. `now` is in seconds since the epoch.
    """
    try:
        with Path(path).open("rb") as file:
            content = json.loads(file.read(65_536))  # it has some hundred bytes
    except OSError as error:
        return Health(False, f"the heartbeat file {path!r} cannot be read: {error.strerror}")
    except (ValueError, RecursionError):
        return Health(False, f"the heartbeat file {path!r} holds no JSON of a worker")
    written_at = _number(content, "at")
    if written_at is None:
        return Health(False, f"the heartbeat file {path!r} does not say when it was written")
    age = (time.time() if now is None else now) - written_at
    who = f"worker {content.get('pid', '?')}"
    if abs(age) > max_age:
        when = f"{duration_text(abs(age))} {'ago' if age > 0 else 'ahead of this clock'}"
        return Health(False, f"{who} sent its last heartbeat {when}, not within {max_age:g} s")
    if readiness and content.get("ready") is not True:
        return Health(False, f"{who} is not ready: {content.get('reason') or 'no reason given'}")
    return Health(True, f"{who} sent a heartbeat {duration_text(age)} ago")


def _number(content: Any, key: str) -> float | None:
    value = content.get(key) if isinstance(content, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def judge_rows(
    using: str, *, host: str, name: str = "", max_age: float, readiness: bool = False
) -> Health:
    """Judge the workers of a host by their rows; `name`: a prefix of their names.

    One heartbeat within `max_age` seconds is enough. `readiness`: the worker must also accept new
    jobs. Raises Django's database errors.
    """
    workers = Worker.objects.using(using).filter(host=host, name__startswith=name)
    fresh = workers.filter(heartbeat_at__gt=Now() - timedelta(seconds=max_age))
    known, alive = workers.count(), fresh.count()
    whose = f"host {host!r}" + (f" with a name that begins with {name!r}" if name else "")
    if not known:
        return Health(False, f"no worker of {whose} is registered")
    if not alive:
        return Health(
            False, f"no worker of {whose} ({known} registered) sent a heartbeat in {max_age:g} s"
        )
    if readiness and not fresh.filter(draining=False, stopping=False).exists():
        return Health(False, f"every worker of {whose} is draining or stopping")
    return Health(
        True,
        f"{alive} of {number_of('worker', known)} of {whose} sent a heartbeat in {max_age:g} s",
    )
