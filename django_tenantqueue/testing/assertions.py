"""What a test has enqueued: assertions, and the jobs of a block. See the package."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connections
from django.db.models import Max

from ..calls.given_options import merged
from ..calls.known import known_signature
from ..calls.options import NAMES, Options
from ..calls.sources import Source, describe_function, describe_method, describe_named
from ..coroutines import twin
from ..databases import databases_of_test
from ..models import Job
from ..operations.again import kept_options
from ..status.display_limits import LISTED
from ..status.masking import mask_of_job, split
from ..tasks import Task
from .blocks import block


@block
def captured_jobs() -> Iterator[list[Job]]:
    """Yield a list that has the jobs enqueued in the block, in order, when the block has ended.

    With several databases, those of the first come first. They may have run in the block. Jobs of
    eager mode are not among them, since no row is made.
    """
    places = [Job.objects.using(using) for using in databases_of_test()]
    lasts = [jobs.aggregate(last=Max("pk"))["last"] or 0 for jobs in places]
    captured: list[Job] = []
    yield captured
    for jobs, last in zip(places, lasts, strict=True):
        captured += jobs.filter(pk__gt=last).select_related("queue").order_by("pk")


def enqueued_jobs(task: Any, /, *args: Any, **given: Any) -> list[Job]:
    """Return the jobs that have not ended and match, in the order of their ids.

    `task`: a task, a method of a model instance or a class, a function, or a name as schedules
    have it. Arguments are those of the call; those that are left out may be anything. A keyword
    that is no parameter of the task is an option of `.using()`. Raises TypeError for arguments that
    the task does not have, and InvalidOption.
    """
    wanted = _Wanted.read(task, args, given)
    return [job for job in _all_jobs() if not wanted.differences(job)]


def assert_enqueued(task: Any, /, *args: Any, **given: Any) -> Job:
    """Return the first waiting or running job that matches; raise AssertionError if none does.

    The arguments are those of enqueued_jobs().
    """
    __tracebackhide__ = True
    wanted = _Wanted.read(task, args, given)
    jobs = _all_jobs()
    for job in jobs:
        if not wanted.differences(job):
            return job
    raise AssertionError("\n".join([f"No job matches {wanted}.", *_near_misses(wanted, jobs)]))


def refute_enqueued(task: Any, /, *args: Any, **given: Any) -> None:
    """Raise AssertionError if a waiting or running job matches.

    The arguments are those of enqueued_jobs().
    """
    __tracebackhide__ = True
    if found := enqueued_jobs(task, *args, **given):
        wanted = _Wanted.read(task, args, given)
        shown = [f"  {_show(job)}" for job in found[:LISTED]]
        raise AssertionError("\n".join([f"{len(found)} jobs match {wanted}:", *shown]))


aenqueued_jobs = twin(enqueued_jobs)
aassert_enqueued = twin(assert_enqueued)
arefute_enqueued = twin(refute_enqueued)


def _all_jobs() -> list[Job]:
    places = [Job.objects.using(using) for using in databases_of_test()]
    return [job for jobs in places for job in jobs.select_related("queue").order_by("pk")]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a job is compared with. `arguments` are encoded, by the names of parameters."""

    source: Source
    text: str
    arguments: dict[str, Any]
    options: dict[str, Any]

    @classmethod
    def read(cls, task: Any, args: tuple[Any, ...], given: dict[str, Any]) -> _Wanted:
        source = _source_of(task)
        signature = known_signature(source.source_type, source.source_id, source.source_method)
        own = {} if signature is None else signature.parameters
        named = {n: v for n, v in given.items() if n in own or n not in NAMES}
        asked = {n: v for n, v in given.items() if n not in named}
        options = merged(Options(), dict(asked))
        stored = json.loads(source.encode(args, named, follows=True))
        try:
            arguments = _by_name(signature, stored)
        except TypeError as error:
            raise TypeError(f"{source.name}: {error}") from None
        text = ", ".join([*map(repr, args), *(f"{n}={v!r}" for n, v in named.items())])
        return cls(source, text, arguments, {n: getattr(options, n) for n in asked})

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"{self.source.name}({self.text or '…'}){options and ' with '}{options}"

    def is_of(self, job: Job) -> bool:
        """Whether a job runs the same, with whatever arguments."""
        source = self.source
        return (job.source_type, job.source_id, job.source_method) == (
            source.source_type,
            source.source_id,
            source.source_method,
        )

    def differences(self, job: Job) -> list[str]:
        """Return in what a job is different, as texts; empty: it matches."""
        if not self.is_of(job):
            return [f"runs {job.task}"]
        found = [f"it has ended ({job.state})"] if job.final else []
        have = _arguments_of(job, job.args)
        shown = _arguments_of(job, mask_of_job(job).call(job.args))
        for name, value in self.arguments.items():
            if name not in have:
                found.append(f"{name} is missing")
            elif have[name] != value:
                found.append(f"{name} is {shown.get(name)!r}")
        for name, value in self.options.items():
            is_so = _option_of(job, name)
            if name in ("run_at", "expires_at") and isinstance(value, timedelta):
                # the process that enqueues computes it, before the row is made
                apart = timedelta.max if is_so is None else abs(is_so - job.created_at - value)
                is_same = apart <= timedelta(seconds=10)
            else:
                is_same = is_so == _compared(name, value)
            if not is_same:
                found.append(f"{name} is {str(is_so) if isinstance(is_so, datetime) else is_so!r}")
        return found


def _source_of(task: Any) -> Source:
    if isinstance(task, Task):
        return task.source
    if isinstance(task, str):
        return describe_named(task)[0]
    if inspect.ismethod(task):
        return describe_method(task.__self__, task.__name__)
    return describe_function(task)


def _by_name(
    signature: inspect.Signature | None, stored: Any, *, defaults: bool = False
) -> dict[str, Any]:
    """Return stored arguments by the names of parameters. Raises TypeError when they do not fit."""
    args, kwargs = split(stored)
    if signature is None:
        return {**{f"argument {n}": v for n, v in enumerate(args or (), 1)}, **(kwargs or {})}
    bound = signature.bind_partial(*(args or ()), **(kwargs or {}))
    if defaults:
        bound.apply_defaults()
    found: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            found |= value
        else:
            found[name] = value
    return found


def _arguments_of(job: Job, stored: Any) -> dict[str, Any]:
    signature = known_signature(job.source_type, job.source_id, job.source_method)
    try:
        return _by_name(signature, stored, defaults=True)
    except TypeError:  # the function has changed, or raw SQL made the row
        return _by_name(None, stored)


def _option_of(job: Job, name: str) -> Any:
    read: dict[str, Any] = {
        **kept_options(job, job.tenant),
        "queue": job.queue.name,
        "unique": job.unique_mode,
        "on_success": _names_of(job, "success"),
        "on_end": _names_of(job, "end"),
    }
    return read[name] if name in read else getattr(job, name)


def _compared(name: str, value: Any) -> Any:
    """Return an option that was given as _option_of() has it. What follows is compared by name."""
    if name in ("on_success", "on_end") and value:
        return [call.source.name for call in value]
    return value.mode if name == "unique" and value else value


def _names_of(job: Job, on: str) -> list[str] | None:
    return [stored["task"] for stored in job.follow_ups or () if stored["on"] == on] or None


def _show(job: Job) -> str:
    args, kwargs = split(mask_of_job(job).call(job.args))
    call = [*map(repr, args or ()), *(f"{n}={v!r}" for n, v in (kwargs or {}).items())]
    return f"#{job.pk} {job.task}({', '.join(call)}), {job.tenant!r} / {job.queue.name!r}"


def _near_misses(wanted: _Wanted, jobs: list[Job]) -> list[str]:
    """Return lines about the jobs of the same task, nearest first, and about the others."""
    near = [(wanted.differences(job), job) for job in jobs if wanted.is_of(job)]
    near.sort(key=lambda pair: len(pair[0]))
    lines = [f"  {_show(job)}: {'; '.join(found)}" for found, job in near[:LISTED]]
    if len(near) > LISTED:
        lines.append(f"  and {len(near) - LISTED} more of it")
    others = Counter(job.task for job in jobs if not wanted.is_of(job)).most_common(LISTED)
    if others:
        lines.append("Other jobs: " + ", ".join(f"{name} × {n}" for name, n in others) + ".")
    if not near and not others:
        lines.append("There are no jobs.")
    for using in databases_of_test():
        entries = connections[using].run_on_commit
        hooks = [str(getattr(entry[1], "__module__", "")) for entry in entries]
        if count := sum(not module.startswith("django_tenantqueue.") for module in hooks):
            lines.append(
                f"Hooks of transaction.on_commit() that have not run: {count}. "
                f"run_commit_hooks({using!r}) runs them."
            )
    return lines
