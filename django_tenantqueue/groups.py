"""`group([...]).delay(on_end=…)`: the short form of a monitor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Never, Unpack

from .calls import other_systems
from .calls.call import CallLike, read_calls
from .calls.option_types import GroupOptions
from .calls.options import NAMES, unknown_options
from .coroutines import twin
from .exceptions import InvalidArgument, InvalidOption
from .models import ConcurrentJobMonitor
from .operations.monitors import start
from .states import Priority

_LATER = ("countdown", "eta", "run_at")
_OF_DETAILS = ("tenant", "queue", "priority", "session", "created_by")
_AT_THE_END = ("link", "link_error", "on_done", "on_end", "on_success", "then")

DEFAULTS: dict[str, Any] = {
    "name": None,
    "tenant": None,
    "queue": None,
    "priority": Priority.DEFAULT,
    "session": None,
    "created_by": None,
    "parallel": 1000,
    "interval": 0,
    "stop_after_failures": None,
}


@dataclass(frozen=True, slots=True)
class Group:
    """Calls that are enqueued together. Made by group()."""

    calls: Any
    options: dict[str, Any] = field(default_factory=dict)

    def using(self, **options: Unpack[GroupOptions]) -> Group:
        """Return the same with options of its monitor.

        name (what operators read; the name of the first task by default), tenant, queue, priority,
        session, created_by, parallel, interval, stop_after_failures. Raises InvalidOption.
        """
        for name, value in options.items():
            if name in _LATER:
                raise InvalidOption(
                    f"{name}={value!r}: the jobs of a group start at once. To start them "
                    "later, enqueue a task with run_at=… that enqueues the group"
                )
            if name in _AT_THE_END:
                raise InvalidOption(
                    f"{name}=…: {other_systems.DONE}. It reads the states of the jobs with "
                    "current_job().summary.details()"
                )
            if name not in DEFAULTS and name in NAMES:
                raise InvalidOption(
                    f"{name}=…: an option of each call: group([task.using({name}=…).call(1), …])"
                )
        unknown = [name for name in options if name not in DEFAULTS]
        if unknown:
            raise unknown_options(unknown, DEFAULTS, other_systems.OF_GROUP)
        return Group(self.calls, {**self.options, **options})

    def _check_none(self, given: Mapping[str, Any]) -> None:
        """Raise InvalidOption for options that were given to another method than using()."""
        if given:
            self.using(**given)  # raises for a name that no group has
            raise InvalidOption(
                f"{next(iter(given))}=…: options of a group come before delay(), in using(): "
                "group([…]).using(…).delay(on_end=…)"
            )

    def delay(
        self, *more: Never, on_end: CallLike | None = None, **unknown: Any
    ) -> ConcurrentJobMonitor:
        """Enqueue the calls as details of a monitor in the current transaction; return it.

        `on_end`: a call that is enqueued once, when all have ended, in any states. It reads their
        results with `current_job().summary.details()`. The calls are read once. All or nothing.
        Raises the errors of ConcurrentJobMonitor.objects.start().
        """
        if more:
            raise InvalidArgument("delay() of a group takes no arguments: delay(on_end=…)")
        self._check_none(unknown)
        given = {name: value for name, value in self.options.items() if value is not None}
        options = {**DEFAULTS, **given}
        calls = iter(read_calls(self.calls, "calls"))
        first = next(calls, None)
        name = options.pop("name") or ("group" if first is None else first.source.name)
        changes = {n: options.pop(n) for n in _OF_DETAILS}
        details = () if first is None else chain([first], calls)
        longest = ConcurrentJobMonitor._meta.get_field("name").max_length
        name = name[:longest] if isinstance(name, str) else name  # start() refuses others
        return start(name, details, changes, on_end=on_end, keep_open=False, **options)

    adelay = twin(delay)

    if not TYPE_CHECKING:  # else every attribute would exist

        def call(self):
            """Raise InvalidArgument: a group follows no job, and is no part of another group."""
            raise InvalidArgument(
                "a group that follows a job, or is in another group, is started by a task: give "
                "the call of a task that runs group([…]).delay()"
            )

        def __or__(self, other):
            """Raise TypeError: a group is not piped."""
            raise TypeError(f"a group is not joined by |: use {other_systems.DONE}")

        def __call__(self, *args, **kwargs):
            """Raise TypeError: a group is enqueued by delay()."""
            raise TypeError("a group is not called: group([task.call(1), …]).delay(on_end=…)")

        def __getattr__(self, name):
            """Name the counterpart of a method that groups of other systems have."""
            raise other_systems.unknown_attribute(self, name, other_systems.GROUP)


def group(calls: Iterable[CallLike] | CallLike, /, *more: Never, **unknown: Never) -> Group:
    """Return calls that are enqueued together: `group([a.call(1), b.call(2)]).delay(on_end=c)`.

    `calls`: as for the details of a monitor, also a generator or `(queryset, "method")`. Raises
    InvalidArgument for several arguments, and InvalidOption for options.
    """
    if more:
        raise InvalidArgument(
            f"group() takes one list of calls, not {1 + len(more)} arguments: group([task.call(1), "
            "task.call(2)])"
        )
    made = Group(calls)
    made._check_none(unknown)
    return made
