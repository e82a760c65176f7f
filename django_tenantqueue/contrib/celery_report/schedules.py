"""Read the schedules of Celery's beat, and write what declares them here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import DatabaseError

from ...exceptions import TenantQueueError
from ..schedules.beat import PERIODIC_TASK, read_periodic_task

ONCE = (
    "the task has several entries: run this once in a shell, add it in the admin, or declare a "
    "task for each entry"
)
UNITS = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}


@dataclass(frozen=True, slots=True)
class BeatEntry:
    """An entry of beat: of the settings, or a row of django-celery-beat."""

    name: str
    task: str
    source: str
    """`beat_schedule`, or `django-celery-beat`."""
    when: str
    """The times as code, without a closing bracket for arguments; "" if there is no such form."""
    arguments: str
    write: str
    notes: list[str]

    @property
    def declaration(self) -> str:
        """The value of @task(schedule=…)."""
        return f"{self.when[:-1]}{self.arguments})"

    def beside(self, line: str | None) -> BeatEntry:
        """Return the entry as it is printed beside the line that declares its task, if any."""
        if line is None:
            note = f"no task of the name {self.task!r} is registered"
            return replace(self, notes=[*self.notes, note])
        # the queue of the line comes from the options of the task, or from the routes
        notes = [n for n in self.notes if not (n.startswith("queue=") and n.split(":")[0] in line)]
        if not self.when or f"schedule={self.declaration}" not in line:
            return replace(self, notes=notes)
        return replace(self, write=f"the line of {self.task} above, which has it", notes=notes)


def read_schedules(app: Any) -> list[BeatEntry]:
    """Return all entries, without those of Celery itself."""
    found = [_entry(app, name, entry) for name, entry in dict(app.conf.beat_schedule or {}).items()]
    of_task: dict[str, int] = {}
    for entry in found:
        of_task[entry.task] = of_task.get(entry.task, 0) + 1
    made = [
        entry if of_task[entry.task] == 1 or not entry.when else _as_row(entry) for entry in found
    ]
    # its scheduler copies the entries of the settings into rows
    rows = [row for row in _rows() if row.name not in {entry.name for entry in found}]
    return [entry for entry in (*made, *rows) if not entry.task.startswith("celery.")]


def _entry(app: Any, name: str, entry: Any) -> BeatEntry:
    notes: list[str] = []
    when = _when(app, entry["schedule"], notes)
    args, kwargs = tuple(entry.get("args") or ()), dict(entry.get("kwargs") or {})
    arguments = (f", args={args!r}" if args else "") + (f", kwargs={kwargs!r}" if kwargs else "")
    for option, value in dict(entry.get("options") or {}).items():
        notes.append(_option(option, value))
    write = f"@task(schedule={when[:-1]}{arguments}))" if when else ""
    return BeatEntry(str(name), entry["task"], "beat_schedule", when, arguments, write, notes)


def _option(option: str, value: Any) -> str:
    names = {"expires": "expires_at", "queue": "queue", "time_limit": "hard_timeout"}
    if option in names:
        scope = ", for all jobs of the task" if option == "expires" else ""
        return f"{option}={value!r}: write {names[option]}={value!r} in @task{scope}"
    if option == "priority":
        return f"priority={value!r}: write priority=… in @task; a lower number runs first here"
    return f"{option}={value!r} of the entry is left out"


def _as_row(entry: BeatEntry) -> BeatEntry:
    """Return an entry of a task that has several: each is a row, which code or the admin makes."""
    write = f"make_schedule({entry.name!r}, {entry.task!r}, {entry.when}{entry.arguments})"
    return BeatEntry(entry.name, entry.task, entry.source, "", "", write, [*entry.notes, ONCE])


def _when(app: Any, schedule: Any, notes: list[str]) -> str:
    """Return the times as code; "" with a note if they have no form here."""
    if hasattr(schedule, "_orig_minute"):
        day, weekday = (_field(getattr(schedule, f"_orig_day_of_{n}")) for n in ("month", "week"))
        if not day.startswith("*") and not weekday.startswith("*"):
            notes.append(
                f"day {day} and weekday {weekday} must both match in Celery, and one of them in "
                "cron: make two schedules, or check the day in the task"
            )
            return ""
        fields = (schedule._orig_minute, schedule._orig_hour, day, schedule._orig_month_of_year)
        expression = " ".join(_field(field) for field in (*fields, weekday))
        zone = str(app.timezone)
        own = "" if zone == settings.TIME_ZONE else f", time_zone={zone!r}"
        return f"Cron({expression!r}{own})"
    length = getattr(schedule, "run_every", schedule)
    if isinstance(length, int | float):
        length = timedelta(seconds=length)
    if isinstance(length, timedelta) and length >= timedelta(seconds=1):
        return f"Every({_length(int(length.total_seconds()))})"
    notes.append(f"{schedule} has no form here: choose a time, or an interval from one second")
    return ""


def _length(seconds: int) -> str:
    unit, size = next(entry for entry in UNITS.items() if seconds % entry[1] == 0)
    return f"{unit}={seconds // size}"


def _field(value: Any) -> str:
    """Return a field of a crontab: a text, a number or some numbers."""
    if isinstance(value, str):
        return "".join(value.split())
    return ",".join(map(str, sorted(value))) if isinstance(value, Iterable) else str(value)


def _rows() -> Iterable[BeatEntry]:
    """Yield the rows of django-celery-beat, which `manage.py importbeat` imports."""
    try:
        model: Any = apps.get_model(*PERIODIC_TASK)
        rows = list(
            model._default_manager.select_related("crontab", "interval", "clocked", "solar")
            .exclude(task__startswith="celery.")
            .order_by("pk")
        )
    except (LookupError, DatabaseError):
        return
    for row in rows:
        try:
            made, notes = read_periodic_task(row)
            made.clean()
            write = "manage.py importbeat"
        except (TenantQueueError, ValidationError) as error:
            notes = ["; ".join(getattr(error, "messages", [str(error)]))]
            write = ""
        yield BeatEntry(row.name, row.task, "django-celery-beat", "", "", write, notes)
