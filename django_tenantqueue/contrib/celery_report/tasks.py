"""Read a Celery task, and write the line that declares it here."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...states import MOST_ATTEMPTS
from .names import HOOKS
from .schedules import BeatEntry

SHOWN = (
    *("autoretry_for", "dont_autoretry_for", "max_retries", "default_retry_delay"),
    *("retry_backoff", "retry_backoff_max", "retry_jitter", "retry_kwargs", "rate_limit"),
    *("time_limit", "soft_time_limit", "acks_late", "reject_on_worker_lost", "ignore_result"),
    *("serializer", "expires", "priority", "queue", "routing_key", "throws", "track_started"),
)
"""Options of Celery's tasks that the report names, in this order."""
ERRBACK = {"request", "exc", "traceback"}
"""Parameters of a task that is called by link_error."""


@dataclass(frozen=True, slots=True)
class CeleryTask:
    """A task of Celery."""

    name: str
    file: str
    line: int
    options: dict[str, str]
    """What was written in Celery, each value as Python code."""
    write: str
    """The decorator to write here."""
    imports: list[str]
    """Modules that the decorator names."""
    notes: list[str]


def read_tasks(app: Any, task: Any, schedules: Sequence[BeatEntry]) -> Iterator[CeleryTask]:
    """Yield the task; nothing for one that a library brings."""
    func = inspect.unwrap(vars(type(task)).get("__wrapped__") or type(task).run)
    code = getattr(func, "__code__", None)
    file = code.co_filename if code is not None else ""
    if "site-packages" in file or "dist-packages" in file:
        return
    uses = _uses(func)
    options, imports, notes = _declaration(app, task, uses)
    own = [entry for entry in schedules if entry.task == task.name]
    if len(own) == 1 and own[0].when:
        options["schedule"] = own[0].declaration
        imports.append("django_tenantqueue")
    if task.name != f"{func.__module__}.{func.__name__}":
        options["name"] = repr(task.name)
    given = ", ".join(f"{name}={value}" for name, value in options.items())
    yield CeleryTask(
        name=task.name,
        file=file,
        line=code.co_firstlineno if code is not None else 0,
        options=_written(app, task),
        write=f"@task({given})" if given else "@task",
        imports=sorted(set(imports)),
        notes=notes + _notes(task, func, uses),
    )


def _celery_classes(task: Any) -> Iterator[type]:
    """Yield the classes of a task, up to Celery's own."""
    for klass in type(task).__mro__:
        if klass.__module__.startswith("celery."):
            return
        yield klass


def _written(app: Any, task: Any) -> dict[str, str]:
    """Return the options that the project gave, without what Celery took from its settings."""
    found = {"bind": "True"} if _is_bound(task) else {}
    from_settings = dict(type(task).from_config)
    for name in SHOWN:
        for klass in _celery_classes(task):
            if name in vars(klass):
                value = vars(klass)[name]
                setting = from_settings.get(name)
                if setting is None or value != getattr(app.conf, setting, None):
                    found[name] = _as_code(value)[0]
                break
    base = type(task).__bases__[0]
    if not base.__module__.startswith("celery."):
        found["base"] = base.__name__
    return found


def _is_bound(task: Any) -> bool:
    return not isinstance(inspect.getattr_static(type(task), "run"), staticmethod)


def _as_code(value: Any) -> tuple[str, list[str]]:
    """Return a value as Python code, and the modules that it names."""
    if isinstance(value, type):
        module = value.__module__
        if module == "builtins":
            return value.__qualname__, []
        return f"{module}.{value.__qualname__}", [module]
    if isinstance(value, tuple | list):
        parts = [_as_code(each) for each in value]
        inner = ", ".join(code for code, _ in parts)
        end = "," if len(parts) == 1 else ""
        return f"({inner}{end})", [name for _, names in parts for name in names]
    return repr(value), []


def _uses(func: Any) -> set[str]:
    """Return what the function uses of itself as a Celery task: retry, request, update_state …"""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(func)))
    except (OSError, TypeError, SyntaxError):
        return set()
    names = {func.__name__, *list(inspect.signature(func).parameters)[:1]}
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in names
    }


def _declaration(
    app: Any, task: Any, uses: set[str]
) -> tuple[dict[str, str], list[str], list[str]]:
    """Return the options of @task as code, the modules that they name, and what to think about."""
    options: dict[str, str] = {}
    notes: list[str] = []
    queue = _queue(app, task)
    if queue is not None:
        options["queue"] = repr(queue)
    imports = _retries(task, uses, options)
    conf = app.conf
    if task.soft_time_limit and task.soft_time_limit != conf.task_soft_time_limit:
        options["timeout"] = repr(task.soft_time_limit)
    if task.time_limit and task.time_limit != conf.task_time_limit:
        options["hard_timeout"] = repr(task.time_limit)
    if options.get("max_attempts", "1") != "1" and not task.acks_late:
        notes.append("a run whose worker dies is repeated here; Celery loses it without acks_late")
    if options.get("max_attempts", "") != "1" and "hard_timeout" in options:
        notes.append(
            "a run that is killed at hard_timeout is repeated here; Celery's time_limit ends the "
            "task"
        )
    if isinstance(task.expires, int | float):
        options["expires_at"] = repr(task.expires)
    elif task.expires is not None:
        notes.append("expires: give expires_at=… in .using(), where the job is enqueued")
    if task.rate_limit and task.rate_limit != conf.task_default_rate_limit:
        options["max_per_second"] = rate(task.rate_limit)
        notes.append("the rate is that of the whole fleet; Celery's is that of each worker")
    if task.priority is not None:
        notes.append(f"priority {task.priority}: here a lower number runs first, 240 is the middle")
    return options, imports, notes


def _queue(app: Any, task: Any) -> str | None:
    """Return the queue that the task's own option or the routes name; None: Celery's default."""
    found = getattr(task, "queue", None)
    if found is None:
        try:
            found = app.amqp.router.route({}, task.name).get("queue")
        except Exception as error:  # noqa: BLE001 - a route is code of the project
            return f"? {error}"
    name = str(getattr(found, "name", found))
    return None if found is None or name == app.conf.task_default_queue else name


def _retries(task: Any, uses: set[str], options: dict[str, str]) -> list[str]:
    """Add what becomes of retries; return the modules that it names."""
    kinds = tuple(getattr(task, "autoretry_for", None) or ())
    if not kinds and "retry" not in uses:
        # acks_late alone: an error is not retried, a run that its worker did not end is
        options |= {"retry_when": "()"} if task.acks_late else {"max_attempts": "1"}
        return []
    given = getattr(task, "retry_kwargs", None) or {}
    most = given.get("max_retries", task.max_retries)
    options["max_attempts"] = repr(MOST_ATTEMPTS if most is None else most + 1)
    wait = given.get("countdown", task.default_retry_delay)
    longest = wait
    if kinds and getattr(task, "retry_backoff", False):
        wait = int(max(1, task.retry_backoff))
        longest = getattr(task, "retry_backoff_max", 600)
    if wait:
        options["backoff"], options["backoff_max"] = repr(wait), repr(longest)
    else:
        options["backoff"] = "0"
    imports: list[str] = []
    if not {Exception, BaseException} & set(kinds):
        options["retry_when"], imports = _as_code(kinds)
    return imports


def rate(text: Any) -> str:
    """Return a rate of Celery ("10/m", "5", 3) as starts a second, written as a fraction."""
    number, _, unit = str(text).partition("/")
    per = {"": "", "s": "", "m": " / 60", "h": " / 3600"}
    return f"{number}{per[unit.strip()]}" if re.fullmatch(r"[\d.]+", number) else repr(text)


def _notes(task: Any, func: Any, uses: set[str]) -> list[str]:
    """Return what cannot be said in the decorator."""
    notes = []
    if not getattr(task, "_decorated", False):
        notes.append(f"a class: make a function of {type(task).__name__}.run()")
    elif _is_bound(task):
        first = next(iter(inspect.signature(func).parameters), "self")
        notes.append(f"remove the parameter {first}; current_job() is the job that runs")
    if set(inspect.signature(func).parameters) >= ERRBACK:
        notes.append(
            "remove the parameters request, exc and traceback; current_job().previous is the job "
            "that has ended, with name, state, args and last_error"
        )
    if getattr(task, "throws", None):
        notes.append("throws: nothing; it only changes what Celery logs")
    if "replace" in uses:
        notes.append("self.replace(): enqueue the other task, and return")
    if getattr(task, "dont_autoretry_for", None):
        notes.append("dont_autoretry_for: retry_when=… with a function, or raise Permanent")
    if task.serializer not in (None, "json"):
        notes.append(
            f"serializer {task.serializer!r}: arguments are JSON here; dates, Decimals, UUIDs and "
            "saved model instances are encoded, and everything else is rejected"
        )
    methods = [name for name in HOOKS if any(name in vars(k) for k in _celery_classes(task))]
    notes += [f"{name}(): the hook {HOOKS[name]} of @task(hooks=…)" for name in methods]
    return notes
