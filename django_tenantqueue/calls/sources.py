"""What a job names, and what may be run: (source_type, source_id, source_method).

| source_type | source_id | source_method | runs |
| --- | --- | --- | --- |
| task | | name of a registered task | the task's function |
| internal | | name of a task of this package | the same; no name that people enter finds it |
| callable | | module:qualified.name | a function or a method of a module-level object |
| class | module:Class | method | a class or static method |
| model label | primary key | method | a method of the instance, loaded at run time |
| model label@alias | primary key | method | the same, loaded from that database |
| nothing | | end | nothing: the end of a monitor without a callback |

Nothing with a leading underscore runs, and besides tasks only Delayable classes and what
TENANTQUEUE["CALLABLES"] lists, checked at enqueue and again at run time. What people and clients
enter passes check_nameable(), whatever way it comes in.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from importlib import import_module
from types import FunctionType, MethodType
from typing import Any, Protocol

from django.apps import apps
from django.core.exceptions import ObjectDoesNotExist
from django.db import router
from django.db.models import Model

from ..conf import get_settings
from ..exceptions import InvalidArgument, NotAllowed, Permanent, UnknownTask, Unsupported
from ..features import Feature, hooks
from .arguments import RESULT_MARK, TICK_MARK, encode_args, size_of, write_alias
from .options import Options
from .searchable_option import with_keys
from .secret_option import Secret, marked
from .task_hooks import TaskHooks


class RegisteredTask(Protocol):
    """The part of a Task that running a job needs."""

    name: str
    func: Callable[..., Any]
    is_async: bool
    atomic: bool
    hooks: TaskHooks | None
    source: Source
    rate: tuple[float, int | None] | None
    extra: Mapping[str, Any]
    """The values of options of apps: see Feature.task_options()."""

    @property
    def options(self) -> Options:
        """The options of its jobs."""

    def _wants_retry(self, error: BaseException) -> bool:
        """Whether to retry a run that raised `error`."""

    def _backoff_seconds(self, attempt: int, error: BaseException) -> float | None:
        """Seconds before the next attempt; None: the settings' backoff."""


@dataclass(frozen=True, slots=True)
class Source:
    """What to run. `name` is what people filter by; `func`, if any, is for check_call().

    `secret`: what a task declares as secret in its arguments. `searchable`: its parameters whose
    values are searched for.
    """

    source_type: str
    source_id: str
    source_method: str
    name: str
    is_async: bool
    func: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    secret: Secret | None = field(default=None, compare=False, repr=False)
    searchable: frozenset[str] = field(default=frozenset(), compare=False, repr=False)

    def encode(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, follows: bool = False
    ) -> str:
        """Return what a job stores of its arguments: see encode_args() and calls/secret_option.py.

        `follows`: it follows another job, whose result may be among them.
        """
        text = encode_args(args, kwargs)
        size, most = size_of(text), get_settings().max_argument_bytes
        if size > most:
            raise InvalidArgument(
                f"the arguments are {size:,} bytes of JSON, more than "
                f"TENANTQUEUE['MAX_ARGUMENT_BYTES'] = {most:,}: store what is large, and pass its "
                "id or its path"
            )
        if TICK_MARK in text:
            raise InvalidArgument(
                "Placeholder('scheduled_at') is for the arguments of schedules: give the time "
                "itself"
            )
        if not follows and RESULT_MARK in text:
            raise InvalidArgument(
                "Placeholder('result') is for the arguments of a call that follows a job, as in "
                "first.using(on_success=second.call(Placeholder('result')))"
            )
        if self.secret is None and not self.searchable:
            return text
        task = known_task(self.source_type, self.source_method) or find_task(self.source_method)
        signature = signature_of(task.func)
        if self.searchable:
            text = with_keys(text, self.searchable, signature, args, kwargs)
        return text if self.secret is None else marked(text, self.secret, signature, args, kwargs)

    def check_call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Raise TypeError now, not in the worker, when the arguments do not fit."""
        if self.func is not None:
            check_call(self.name, self.func, args, kwargs)


NOTHING = Source("nothing", "", "end", "django_tenantqueue.end_of_monitor", False)
"""What the end of a monitor runs that has no callback."""

INTERNAL = "internal"
"""The source type of tasks whose jobs the package alone makes: bulk actions, alerts, callbacks."""
PACKAGE = __name__.partition(".")[0]

_tasks: dict[str, RegisteredTask] = {}
_internal: dict[str, RegisteredTask] = {}
_finders: list[Callable[[str], RegisteredTask | None]] = []


class DelayableMark:
    """Base of Delayable: classes below it may be run by name."""


def register_task(task: RegisteredTask) -> None:
    """Make a task known under its name; the newest definition wins (a reloaded module)."""
    known = _internal if task.source.source_type == INTERNAL else _tasks
    known[task.name] = task


def register_finder(finder: Callable[[str], RegisteredTask | None]) -> None:
    """Let `finder` look for tasks under names that are not registered here; None: it has none."""
    _finders.append(finder)


def adopted(target: Any, options: Mapping[str, Any]) -> RegisteredTask | None:
    """Return the task that wraps one of another system; None: `target` is no such task.

    Raises Unsupported for a task of Celery if no installed app supports those.
    """
    if type(target) is FunctionType:
        return None
    for adopt in hooks(Feature.adopt):
        if (task := adopt(target, options)) is not None:
            return task
    if any(one.__module__.partition(".")[0] == "celery" for one in type(target).__mro__):
        raise Unsupported(
            f"{target!r} is a task of Celery: it needs django_tenantqueue.contrib.celery in "
            "INSTALLED_APPS"
        )
    return None


def registered_tasks() -> Mapping[str, RegisteredTask]:
    """Return all tasks of this process by name, without those of the package's own jobs."""
    return _tasks


def known_names() -> set[str]:
    """Return the names of all tasks of this process, those of the package's own jobs included."""
    return {*_tasks, *_internal}


def known_task(source_type: str, name: str) -> RegisteredTask | None:
    """Return the task of jobs with this source type and method; None: it is not known here."""
    known = {"task": _tasks, INTERNAL: _internal}.get(source_type, {})
    return known.get(name)


def lacks_task(source_type: str, name: str) -> bool:
    """Whether jobs of this source type and method are of a task that this process does not have."""
    return source_type in ("task", INTERNAL) and not has_task(name)


def has_task(name: str) -> bool:
    """Whether this process has a task of this name, for jobs of projects or of this package.

    A task whose module raises an error when it is imported is there: its runs raise the error.
    """
    try:
        return name in known_names() or any(finder(name) for finder in _finders)
    except Exception:  # noqa: BLE001 - whatever a project's module raises
        return True


def check_nameable(name: str) -> None:
    """Raise NotAllowed for the name of an internal function or task of this package."""
    module = name.partition(":")[0]
    if f"{module}.".startswith(f"{PACKAGE}.") and name not in _tasks:
        raise NotAllowed(
            f"{name!r} is a part of {PACKAGE} itself, and cannot be enqueued by name: name a task "
            "of your own"
        )


def find_task(name: str) -> RegisteredTask:
    """Return the task of that name; raise UnknownTask, NotAllowed."""
    check_nameable(name)
    found = _tasks.get(name)
    for finder in _finders if found is None else ():
        found = found or finder(name)
    if found is None:
        raise UnknownTask(
            f"no task is named {name!r} here: is its app in INSTALLED_APPS, and is it defined in "
            "the app's tasks module?",
            name=name,
        )
    return found


def describe_named(name: str) -> tuple[Source, RegisteredTask | None]:
    """Return the source of a task by its name, or of a function as "module:name".

    Raises UnknownTask (this process does not know it), NotAllowed.
    """
    if name not in _tasks and ":" in name:
        func, _task = resolve("callable", "", name)
        is_async = inspect.iscoroutinefunction(func)
        return Source("callable", "", name, name.replace(":", "."), is_async, func), None
    task = find_task(name)
    return replace(task.source, func=task.func), task


def _listed(dotted: str) -> bool:
    return any(fnmatchcase(dotted, pattern) for pattern in get_settings().callables)


def _may_be_found(dotted: str, found: Any, owner: Any) -> bool:
    """Whether CALLABLES lists `found`, imported as `dotted`, an attribute of `owner`.

    A pattern allows a callable if an entry also matches the name under which it is defined, so not
    what a module only imports. Other callables have to be listed in full. Raises NotAllowed for
    callables of this package, under any name, also if a class of the project inherits them.
    """
    func = found
    while isinstance(func, partial):
        func = func.func
    kind = owner if isinstance(owner, type) else type(owner)
    for made in (getattr(func, "__func__", func), *kind.__mro__):
        if not (isinstance(made, type) and issubclass(made, DelayableMark)):
            check_nameable(f"{getattr(made, '__module__', None)}:{dotted}")
    if dotted in get_settings().callables:
        return True
    own = _own_name(found, owner)
    check_nameable(own)
    return own != "" and _listed(dotted) and _listed(own)


def _own_name(found: Any, owner: Any) -> str:
    """Return the dotted name under which a callable is defined; "" when it has none.

    A method that a class inherits is the class' own.
    """
    func = getattr(found, "__func__", found)
    module, qualname = getattr(func, "__module__", None), getattr(func, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(qualname, str):
        return ""
    bound_to = found.__self__ if isinstance(found, MethodType) else owner
    kind = bound_to if isinstance(bound_to, type) else type(bound_to)
    outer, _, name = qualname.rpartition(".")
    if any((base.__module__, base.__qualname__) == (module, outer) for base in kind.__mro__):
        return f"{_dotted(kind)}.{name}"
    return f"{module}.{qualname}"


def _check_public(method: str) -> None:
    if any(part.startswith("_") for part in method.replace(":", ".").split(".")):
        raise NotAllowed(
            f"{method!r} has a leading underscore: only public names can be run. Rename it, or "
            "call it in a public method"
        )


def _check_class(owner: type, method: str) -> None:
    _check_public(method)
    if issubclass(owner, DelayableMark):
        return
    dotted = f"{_dotted(owner)}.{method}"
    found = getattr(owner, method, None) if _listed(dotted) else None
    if not _listed(dotted) or (callable(found) and not _may_be_found(dotted, found, owner)):
        raise NotAllowed(
            f"{dotted} may not be run: give the class the Delayable mixin, or list it in "
            "TENANTQUEUE['CALLABLES']"
        )


@lru_cache(maxsize=1000)
def signature_of(func: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function, remembered."""
    return inspect.signature(func)


def check_call(
    name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Raise TypeError if the arguments do not fit a function in Python."""
    if isinstance(func, MethodType):  # by its function: an instance is not to be remembered
        args = (func.__self__, *args)
        func = func.__func__
    if not inspect.isfunction(func):  # C functions may have no signature
        return
    try:
        signature_of(func).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def is_of_instances(owner: type, method: str, func: Callable[..., Any]) -> bool:
    """Whether what was read from a class as `method` needs an instance as its first argument."""
    return inspect.isfunction(func) and not isinstance(
        inspect.getattr_static(owner, method), staticmethod
    )


def _dotted(owner: Any) -> str:
    return f"{owner.__module__}.{owner.__qualname__}"


def _method_of(owner: Any, method: str, *, label: str) -> Callable[..., Any]:
    found = getattr(owner, method, None)
    if not callable(found):
        raise InvalidArgument(
            f"{label} has no method {method!r}: check the spelling, and that it is a method"
        )
    called: Callable[..., Any] = found
    return called


def describe_method(target: Any, method: str) -> Source:
    """Return the source that runs `method` of a model instance, a class or a module-level object.

    Raises NotAllowed, InvalidArgument.
    """
    if isinstance(target, Model):
        if target.pk is None or target._state.adding:
            raise InvalidArgument(f"{target._meta.label} is not saved yet: save it first")
        _check_class(type(target), method)
        func = _method_of(target, method, label=target._meta.label)
        return Source(
            _label_at(type(target), write_alias(target)),
            str(target.pk),
            method,
            f"{target._meta.label}.{method}",
            inspect.iscoroutinefunction(func),
            func,
        )
    if isinstance(target, type):
        _check_class(target, method)
        if "<locals>" in target.__qualname__:
            raise InvalidArgument(
                f"{_dotted(target)} is local to a function, so no worker can find it: define it at "
                "module level"
            )
        func = _method_of(target, method, label=_dotted(target))
        if is_of_instances(target, method, func):
            raise InvalidArgument(
                f"{_dotted(target)}.{method} is a method of instances: call it through a saved "
                "instance, or make it a class method"
            )
        return Source(
            "class",
            f"{target.__module__}:{target.__qualname__}",
            method,
            f"{_dotted(target)}.{method}",
            inspect.iscoroutinefunction(func),
            func,
        )
    raise InvalidArgument(
        f"{type(target).__qualname__} cannot be delayed: use a saved model instance, a class, or a "
        "function"
    )


def _label_at(model: type[Model], alias: str) -> str:
    """Return the label of a model, with the alias of a database that is not its usual one."""
    label = model._meta.label_lower
    return label if alias == router.db_for_write(model) else f"{label}@{alias}"


def describe_rows(
    model: type[Model],
    method: str,
    alias: str,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Callable[[Any], Source]:
    """Return a function that makes the source of `method` for the instance of a primary key.

    `alias`: the database that the rows are read from. Raises NotAllowed, InvalidArgument, and
    TypeError when the arguments, which are the same for all rows, do not fit.
    """
    _check_class(model, method)
    label = model._meta.label
    func = _method_of(model, method, label=label)
    is_async = inspect.iscoroutinefunction(func)
    written = write_alias(model.from_db(alias, [], []))
    source_type, name = _label_at(model, written), f"{label}.{method}"
    check_call(name, func, (None, *args) if is_of_instances(model, method, func) else args, kwargs)
    return lambda key: Source(source_type, str(key), method, name, is_async)


def describe_function(target: Any) -> Source:
    """Return the source that calls a function. Raises NotAllowed, InvalidArgument."""
    module = getattr(target, "__module__", None)
    qualname = getattr(target, "__qualname__", None)
    if not callable(target) or not module or not qualname or "<" in qualname:
        raise InvalidArgument(
            f"{target!r} is not a function that can be imported by name: define it at module level "
            "with def"
        )
    if inspect.ismethod(target) and not isinstance(target.__self__, type):
        raise InvalidArgument(
            f"{target!r} is a method of an instance, which would be left behind: use "
            f"delayed(instance).{target.__name__}(…)"
        )
    path = f"{module}:{qualname}"
    _check_callable(path)
    is_async = inspect.iscoroutinefunction(target)
    return Source("callable", "", path, f"{module}.{qualname}", is_async, target)


def _check_callable(path: str) -> None:
    check_nameable(path)
    _check_public(path.partition(":")[2])
    if not _listed(path.replace(":", ".")):
        raise NotAllowed(
            f"{path.replace(':', '.')} may not be run: make it a @task, or list it in "
            "TENANTQUEUE['CALLABLES']"
        )


def _import_path(path: str) -> tuple[Any, Any]:
    """Return what a path names, and the module or object of which it is an attribute."""
    module, _, qualname = path.partition(":")
    try:
        owner = found = import_module(module)
        for part in qualname.split("."):
            owner, found = found, getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise UnknownTask(f"{path!r} cannot be imported: {error}", name=path) from error
    return found, owner


def resolve(
    source_type: str, source_id: str, source_method: str
) -> tuple[Callable[..., Any], RegisteredTask | None]:
    """Return the callable of a job, and its task if it is one.

    Raises UnknownTask (this process does not know it), NotAllowed, Permanent (the instance is
    gone).
    """
    if source_type == "task":
        if source_method.startswith(f"{PACKAGE}.") and source_method not in known_names():
            raise UnknownTask(
                f"no app that is installed here has the task {source_method!r}: add its app to "
                "INSTALLED_APPS",
                name=source_method,
            )
        task = find_task(source_method)
        return task.func, task
    if source_type == INTERNAL:
        own = _internal.get(source_method)
        if own is None:
            raise UnknownTask(
                f"this version of {PACKAGE} has no task {source_method!r}: a newer one has "
                "enqueued it. Update this worker",
                name=source_method,
            )
        return own.func, own
    if source_type == NOTHING.source_type:
        return _do_nothing, None
    if source_type == "callable":
        _check_callable(source_method)
        found, holder = _import_path(source_method)
        if not callable(found):
            raise NotAllowed(f"{source_method!r} is not callable: name a function")
        dotted = source_method.replace(":", ".")
        if not _may_be_found(dotted, found, holder):
            raise NotAllowed(
                f"{dotted} may not be run: it is {_own_name(found, holder) or repr(found)}, which "
                "matches no pattern in TENANTQUEUE['CALLABLES']. List the name in full, without '*'"
            )
        return found, None
    if source_type == "class":
        owner, _holder = _import_path(source_id)
        if not isinstance(owner, type):
            raise NotAllowed(f"{source_id!r} is not a class: name a class, or use a function")
        _check_class(owner, source_method)
        return _bound(owner, source_method, source_id), None
    return _bound(
        _instance(source_type, source_id, source_method), source_method, source_type
    ), None


def _do_nothing() -> None:
    return None


def _bound(owner: Any, method: str, label: str) -> Callable[..., Any]:
    try:
        return _method_of(owner, method, label=label)
    except InvalidArgument as error:
        raise UnknownTask(str(error)) from None


def _instance(source_type: str, key: str, method: str) -> Model:
    label, _, alias = source_type.partition("@")
    try:
        model: type[Model] = apps.get_model(label)
    except (LookupError, ValueError) as error:
        raise UnknownTask(
            f"{label!r} is not a model here: {error}. Is its app in INSTALLED_APPS?", name=label
        ) from None
    _check_class(model, method)
    try:
        return model._base_manager.using(alias or router.db_for_write(model)).get(pk=key)
    except ObjectDoesNotExist:
        raise Permanent(f"{model._meta.label} {key!r} does not exist any more") from None
