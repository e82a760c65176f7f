"""Options of a job, for `.using()` and `@task`, and the checks of their values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.utils import timezone

from ..conf import get_settings
from ..exceptions import InvalidOption, Unsupported
from ..features import Feature, hooks
from ..settings import TEN_YEARS
from ..states import CENTURY, EARLIEST, LATEST, MOST_ATTEMPTS, Priority
from ..text import is_storable
from . import other_systems
from .serial import Serial
from .unique import Unique

if TYPE_CHECKING:
    from .call import Call


@dataclass(frozen=True, slots=True)
class Options:
    """How one job runs. None: the default of the task or the settings."""

    tenant: str | None = None
    queue: str | None = None
    priority: int | None = None
    run_at: datetime | timedelta | None = None
    """A timedelta is from now. Callers may also give it as seconds."""
    expires_at: datetime | timedelta | None = None
    max_attempts: int | None = None
    timeout: float | None = None
    hard_timeout: float | None = None
    labels: tuple[str, ...] | None = None
    created_by: str | None = None
    session: str | Serial | None = None
    """A str is the Serial of this key with its defaults."""
    limit_user: str | None = None
    unique: Unique | None = None
    on_success: tuple[Call, ...] | None = None
    """Calls to enqueue when the job has succeeded."""
    on_end: tuple[Call, ...] | None = None
    """Calls to enqueue when the job has ended, in any state."""
    callback_url: str | None = None
    """The URL to which a follow-up posts the job's status."""
    queue_is_fixed: bool = False
    """The call sets the queue, so routings do not apply. Set by merged()."""

    @property
    def is_plain(self) -> bool:
        """Whether jobs with these options pass no gates, are not unique, and nothing follows."""
        return (
            self.session is None
            and self.limit_user is None
            and self.unique is None
            and self.on_success is None
            and self.on_end is None
            and self.callback_url is None
        )


LONGEST_LABEL = 2000
"""Bytes of a label: an index takes no longer ones."""

NAMES = tuple(field.name for field in fields(Options) if field.name != "queue_is_fixed")
"""Names of all options."""
OF_TASKS = (
    *("name", "retry_when", "backoff", "backoff_max", "atomic", "hooks", "secret"),
    *("searchable", "schedule", "max_per_second", "burst"),
)
"""Options of a task that its jobs do not have."""
APPS = {
    "schedule": "django_tenantqueue.contrib.schedules",
    "callback_url": "django_tenantqueue.contrib.http",
}
"""Options that work only while an app is installed."""


def needs_app(option: str) -> Unsupported:
    """Return the error for an option whose app is not installed."""
    return Unsupported(f"{option}= needs {APPS[option]} in INSTALLED_APPS")


def of_apps() -> dict[str, Callable[[Any, Any], Any]]:
    """Return the functions that read the options that apps add to `@task`.

    Raises AppRegistryNotReady before the apps are known.
    """
    return {name: read for own in hooks(Feature.task_options) for name, read in own().items()}


def unknown_options(
    names: Iterable[str], known: Any, elsewhere: Mapping[str, str] = other_systems.OPTIONS
) -> InvalidOption:
    """Return one error for all options that do not exist, with those that are meant.

    Its `option` is the first one.
    """
    first, *others = names
    told = f"unknown option {_meant(first, known, elsewhere)}"
    told += "".join(f"; unknown option {_meant(name, known, elsewhere)}" for name in others)
    return InvalidOption(told, option=first)


def _meant(name: str, known: Any, elsewhere: Mapping[str, str]) -> str:
    if name in elsewhere:
        return f"{name!r}: use {elsewhere[name]}"
    if name not in known and (name in OF_TASKS or (apps.apps_ready and name in of_apps())):
        return f"{name!r}: it is an option of @task"
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}"
    return f"{name!r}: {hint}"


def explained(error: TypeError, func: Any, kwargs: Mapping[str, Any], using: str) -> TypeError:
    """Return an error that says where an option among a call's arguments belongs.

    `using`: what takes options, as code, with {} in their place.
    """
    for name in sorted(kwargs.keys() - inspect.signature(func).parameters.keys()):
        if name in NAMES:
            return TypeError(f"{error}; if the option is meant: {using.format(f'{name}=…')}")
        if name in other_systems.OPTIONS:
            return TypeError(
                f"{error}; if the option is meant: use {other_systems.OPTIONS[name]}. Options come "
                f"before the arguments: {using.format('…')}"
            )
    return TypeError(str(error))


def check_text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not is_storable(value):
        raise InvalidOption(
            f"{name}={value!r}: it must be a str without NUL characters and lone surrogates"
        )
    return value


def check_tenant(name: str, value: Any) -> str:
    """Return `value` if it is a valid tenant, else raise InvalidOption."""
    if len(check_text(name, value)) > 200:
        raise InvalidOption(f"{name}={value!r}: it must be at most 200 characters long")
    return str(value)


def check_queue(name: str, value: Any) -> str:
    """Return `value` if it is a valid name of a queue, else raise InvalidOption."""
    if not 1 <= len(check_text(name, value)) <= 100:
        raise InvalidOption(f"{name}={value!r}: it must be from 1 to 100 characters long")
    return str(value)


def check_whole(name: str, value: Any, least: int, most: int) -> int:
    """Return `value` if it is an int between these, else raise InvalidOption."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidOption(f"{name}={value!r}: it must be an int from {least} to {most}")
    return int(value)


def check_priority(name: str, value: Any) -> int:
    """Return `value` if it is a valid priority, else raise InvalidOption."""
    return check_whole(name, value, Priority.LOWEST_NUMBER, Priority.HIGHEST_NUMBER)


def check_attempts(name: str, value: Any) -> int:
    return check_whole(name, value, 1, MOST_ATTEMPTS)


def check_moment(name: str, value: Any) -> datetime | timedelta:
    """Return a moment, or a time from now, which may be given as seconds; raise InvalidOption."""
    moment = value
    if isinstance(value, int | float) and not isinstance(value, bool):
        most = CENTURY.total_seconds()
        if TEN_YEARS < abs(value) <= most:
            raise InvalidOption(
                f"{name}={value!r}: it is more than ten years from now. Give an aware datetime "
                "instead of a Unix timestamp, or a timedelta"
            )
        # what is longer, or is no number, is rejected below
        moment = timedelta(seconds=value) if -most <= value <= most else timedelta.max
    if isinstance(moment, timedelta):
        if not -CENTURY <= moment <= CENTURY:
            raise InvalidOption(f"{name}={value!r}: it must be at most 100 years")
        return moment
    if not isinstance(value, datetime):
        raise InvalidOption(
            f"{name}={value!r}: it must be an aware datetime, or a timedelta or seconds from now"
        )
    if timezone.is_naive(value):
        raise InvalidOption(
            f"{name}={value!r} is naive: use django.utils.timezone, as in timezone.now()"
        )
    if not EARLIEST <= value < LATEST:
        raise InvalidOption(f"{name}={value!r}: its year must be from 1900 to 8999")
    return value.astimezone(UTC)  # PostgreSQL takes no offset of 16 hours or more


def check_seconds(name: str, value: Any) -> float:
    """Return seconds above 0, which may be given as a timedelta; raise InvalidOption."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise InvalidOption(f"{name}={value!r}: it must be seconds or a timedelta, above 0")
    return float(value)


_NOT_WHO_MADE_IT = (
    ", as in limit_user=request.user.pk. It limits how many jobs of a user run at once. Who made a "
    "job, as your_jobs(user=…) lists them, is created_by=str(request.user.pk)"
)


def read_gate(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        hint = _NOT_WHO_MADE_IT if name == "limit_user" else ""
        raise InvalidOption(f"{name}={value!r}: it must be a str or an int{hint}")
    text = value if isinstance(value, str) else str(check_whole(name, value, -(2**63), 2**63 - 1))
    if not 1 <= len(check_text(name, text)) <= 200:
        raise InvalidOption(f"{name}={value!r}: it must be from 1 to 200 characters long")
    return text


def read_session(name: str, value: Any) -> str | Serial:
    """Return the key of a session, or the Serial if it has more than a key."""
    if not isinstance(value, Serial):
        return read_gate(name, value)
    key = str(value.key)
    return key if value == Serial(key) else value


def check_unique(name: str, value: Any) -> Unique:
    if not isinstance(value, Unique):
        raise InvalidOption(
            f"{name}={value!r}: it must be a Unique, as in Unique('until_executed', key='shop-1')"
        )
    return value


def read_labels(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidOption(f"{name}={value!r}: it must be a list of str")
    return tuple(check_text(name, label) for label in value)


def check_labels(labels: Sequence[str]) -> list[str]:
    """Return the labels of a job that is enqueued; raise InvalidOption when they are too long."""
    sizes = [len(label.encode()) for label in labels]
    if max(sizes, default=0) > LONGEST_LABEL:
        raise InvalidOption(
            f"labels: one is {max(sizes):,} bytes, more than {LONGEST_LABEL:,}: give a shorter one"
        )
    size, most = sum(sizes), get_settings().max_label_bytes
    if size > most:
        raise InvalidOption(
            f"labels: they are {size:,} bytes, more than TENANTQUEUE['MAX_LABEL_BYTES'] = "
            f"{most:,}: give fewer or shorter ones"
        )
    return list(labels)
