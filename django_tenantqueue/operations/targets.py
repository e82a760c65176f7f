"""What a verb of control acts on: rows and ids, or names given by keywords."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from django.db.models import Model, QuerySet
from django.db.models.manager import BaseManager
from django.db.models.query import ModelIterable

from ..calls.options import check_queue, check_tenant, check_text, read_gate
from ..calls.sources import RegisteredTask
from ..databases import primary_of
from ..exceptions import InvalidOption, UnknownQueue
from ..gate_keys import gate_key
from ..models import ConcurrentJobMonitor, Job, Session, TaskControl, TenantQueue, Worker
from ..queries.lists import NEWEST
from .queues import near_names
from .session_control import make_session
from .task_control import check_name, make_control

Rows: TypeAlias = Model | int | Iterable[Model] | Iterable[int] | QuerySet[Any]
"""A row, a queryset, an id, or several rows or ids."""
Names: TypeAlias = Rows | str | Iterable[str]
"""Rows, or a name or several."""
Tasks: TypeAlias = Names | RegisteredTask | Iterable[RegisteredTask]
"""Rows of task controls, or tasks, or their names."""


class NotGiven(Enum):
    """The type of NOT_GIVEN."""

    NOT_GIVEN = "not given"

    def __repr__(self) -> str:
        return self.name


NOT_GIVEN: Any = NotGiven.NOT_GIVEN
"""The default of what a verb acts on. A None that the caller gives is refused: it would widen a
call to all queues of a tenant."""
MODELS: Mapping[str, type[Model]] = {
    "job": Job,
    "queue": TenantQueue,
    "task": TaskControl,
    "session": Session,
    "limit_user": Session,
    "monitor": ConcurrentJobMonitor,
    "worker": Worker,
}
"""The model that each keyword is about."""
NAMED = ("queue", "session", "limit_user")
"""Keywords whose names belong to a tenant."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Rows of one model. `model` None: no rows were given."""

    model: type[Model] | None
    ids: Sequence[int]


@dataclass(slots=True)
class Given:
    """What a caller has given: rows, ids, and other values, which may be names."""

    ids: list[int] = field(default_factory=list)
    models: set[type[Model]] = field(default_factory=set)
    others: list[Any] = field(default_factory=list)


def read(target: Any, using: str) -> Given:
    """Read a row, a queryset, an id, a name, or an iterable of these. Raises InvalidOption."""
    given = Given()
    if isinstance(target, QuerySet) and target._iterable_class is ModelIterable:
        if (alias := getattr(target, "_db", None)) is not None:  # of .using()
            _check_alias(f"the queryset of {target.model.__name__}", alias, using)
        given.models.add(_concrete(target.model))
        given.ids += target.using(using).values_list("pk", flat=True)
        return given
    is_one = isinstance(target, str | bytes | Model) or not isinstance(target, Iterable)
    for item in [target] if is_one else target:
        if isinstance(item, Model):
            check_row(item, using)
            given.models.add(_concrete(type(item)))
            given.ids.append(item.pk)
        elif isinstance(item, int) and not isinstance(item, bool):
            if abs(item) > NEWEST:
                raise InvalidOption(f"{item} is no id: ids go from 1 to {NEWEST}")
            given.ids.append(item)
        else:
            given.others.append(item)
    return given


def check_row(row: Model, using: str) -> None:
    """Raise InvalidOption for a row that is not saved, or that is one of another database."""
    if row.pk is None:
        raise InvalidOption(f"{row!r} has no row: save it first, or give one that has")
    if row._state.db is not None:
        _check_alias(repr(row), row._state.db, using)


def _check_alias(what: str, alias: str, using: str) -> None:
    if using in (alias, primary_of(alias)):
        return
    raise InvalidOption(
        f"{what} is from the database {alias!r}, but this call uses {using!r}: give "
        f"using={alias!r} if its jobs are meant. A replica names its primary as TEST MIRROR"
    )


def _concrete(model: type[Model]) -> type[Model]:
    found: type[Model] = model._meta.concrete_model or model
    return found


def is_task(value: Any) -> bool:
    """Whether a value is a task, and not the row or the name of one."""
    return not isinstance(value, str | Model) and hasattr(value, "source")


def choose(
    verb: str,
    target: Any,
    using: str,
    *,
    bare: str | None = None,
    tenant: str | None = None,
    makes: bool = False,
    allow_unknown: bool = False,
    **keywords: Any,
) -> Chosen:
    """Return the rows that a call is about: those in front, or those of the one keyword."""
    given = {name: value for name, value in keywords.items() if value is not NOT_GIVEN}
    for name, value in given.items():
        if value is None:
            raise InvalidOption(
                f"{verb}({name}=None): None is no {name}. Leave the keyword out where it has no "
                "value, or do not call it then"
            )
    is_given = target is not NOT_GIVEN
    if is_given + len(given) > 1 or (is_given and tenant is not None):
        raise InvalidOption(
            f"{verb}(): give rows or ids in front, or one keyword, not both. Call it once for each"
        )
    makes_row = {"makes": makes, "allow_unknown": allow_unknown}
    if is_given:
        hint = bare or next(iter(keywords))
        return by_position(verb, target, using, bare=bare, hint=hint, **makes_row)
    if given:
        ((kind, value),) = given.items()
        return by_keyword(verb, kind, value, using, tenant=tenant, **makes_row)
    if tenant is not None:
        return queues_of_tenant(verb, tenant, using)
    names = ", ".join(f"{name}=" for name in keywords)
    raise InvalidOption(f"{verb}() needs rows or ids, or one of {names}")


def by_position(
    verb: str,
    target: Any,
    using: str,
    *,
    bare: str | None,
    hint: str,
    makes: bool = False,
    allow_unknown: bool = False,
) -> Chosen:
    """Return what was given in front: rows of one model, ids of `bare`, or tasks.

    `hint`: a keyword that `verb` takes, for errors. The rest is as in by_keyword().
    """
    given = read(target, using)
    if given.others and all(map(is_task, given.others)) and not given.ids:
        tasks = given.others
        return by_keyword(verb, "task", tasks, using, makes=makes, allow_unknown=allow_unknown)
    if given.others:
        found = given.others[0]
        if isinstance(found, BaseManager):
            say = f". A manager has a queryset: {verb}(….all())"
        elif isinstance(found, str) and hint in _NAMES:
            say = f", or use a keyword, as in {verb}({hint}={found!r})"
        else:
            say = ""
        raise InvalidOption(
            f"{verb}({found!r}): give a row, a queryset, an id (an int) or several of these{say}"
        )
    if len(given.models) > 1:
        names = " and ".join(sorted(str(model._meta.verbose_name) for model in given.models))
        raise InvalidOption(f"{verb}() was given a {names}: call it once for each kind of row")
    model = next(iter(given.models), None) or (MODELS[bare] if bare else None)
    if given.ids and model is None:
        raise InvalidOption(
            f"{verb}({given.ids[0]}): the id may be one of several kinds of rows. Use a "
            f"keyword, as in {verb}({hint}={given.ids[0]}), or give the row"
        )
    return Chosen(model, sorted(set(given.ids)))


def by_keyword(
    verb: str,
    kind: str,
    value: Any,
    using: str,
    *,
    tenant: str | None = None,
    makes: bool = False,
    allow_unknown: bool = False,
) -> Chosen:
    """Return the rows that a keyword names.

    `makes`: rows of tasks, sessions and user limits that have none are made, in the caller's
    transaction.
    Raises InvalidOption, and UnknownQueue for the name of a queue.
    """
    model, given = MODELS[kind], read(value, using)
    if wrong := given.models - {model}:
        noun = wrong.pop()._meta.verbose_name
        raise InvalidOption(f"{verb}({kind}=…): this is a row of another kind: {noun}")
    if kind in ("session", "limit_user"):  # numbers are keys, as in .using(session=7)
        is_row = bool(given.models)
        given.others += [] if is_row else given.ids
        given.ids = given.ids if is_row else []
    if tenant is not None:
        check_tenant("tenant", tenant)
        if kind not in NAMED:
            raise InvalidOption(
                f"{verb}({kind}=…, tenant={tenant!r}): tenant= belongs to queue=, session= or "
                f"limit_user=. What {verb}() does to a {kind} it does for all tenants"
            )
        if given.ids:
            raise InvalidOption(f"{verb}({kind}=…, tenant={tenant!r}): tenant= belongs to names")
    ids = set(given.ids)
    if given.others:
        find = _NAMES.get(kind)
        if find is None:
            found = given.others[0]
            raise InvalidOption(f"{verb}({kind}={found!r}): give a row, a queryset, an id, or ids")
        name = _Names(verb, kind, given.others, using, tenant, makes, allow_unknown)
        ids.update(find(name))
    return Chosen(model, sorted(ids))


@dataclass(frozen=True, slots=True)
class _Names:
    """Names that a keyword has, see by_keyword()."""

    verb: str
    kind: str
    names: Sequence[Any]
    using: str
    tenant: str | None
    makes: bool
    allow_unknown: bool


def _queues(given: _Names) -> Iterable[int]:
    rows = TenantQueue.objects.using(given.using)
    if given.tenant is not None:
        rows = rows.filter(tenant=given.tenant)
    for name in given.names:
        found = list(rows.filter(name=check_queue("queue", name)).values_list("pk", flat=True))
        if not found:
            whose = "no tenant has a" if given.tenant is None else f"tenant {given.tenant!r} has no"
            raise UnknownQueue(
                f"{given.verb}(queue={name!r}): {whose} queue of that name."
                f"{near_names(name, rows)} make_queue({given.tenant or '…'!r}, {name!r}) makes one"
            )
        yield from found


def queues_of_tenant(verb: str, tenant: str, using: str) -> Chosen:
    """Return all queues of a tenant. Raises UnknownQueue when there is none."""
    rows = TenantQueue.objects.using(using).filter(tenant=check_tenant("tenant", tenant))
    ids = sorted(rows.order_by().values_list("pk", flat=True))
    if not ids:
        raise UnknownQueue(f"{verb}(tenant={tenant!r}): this tenant has no queues")
    return Chosen(TenantQueue, ids)


def _tasks(given: _Names) -> Iterable[int]:
    names = sorted({getattr(name, "name", name) for name in given.names}, key=str)
    for name in names:
        if not given.allow_unknown or not isinstance(name, str):
            check_name(name, using=given.using)
    if given.makes:
        return [make_control(given.using, name).pk for name in names]
    rows = TaskControl.objects.using(given.using).filter(task__in=names)
    return list(rows.values_list("pk", flat=True))


def _sessions(given: _Names) -> Iterable[int]:
    row_kind = Session.Kind.SERIAL if given.kind == "session" else Session.Kind.LIMIT_USER
    keys = sorted({read_gate(given.kind, key) for key in given.names})
    rows = Session.objects.using(given.using).filter(kind=row_kind)
    if given.tenant is not None:
        if given.makes:
            return [make_session(given.using, row_kind, given.tenant, key).pk for key in keys]
        gates = [gate_key(given.tenant, key) for key in keys]
        return list(rows.filter(gate_key__in=gates).values_list("pk", flat=True))
    found = list(rows.filter(key__in=keys).values_list("pk", "key"))
    if given.makes and (missing := sorted(set(keys) - {key for _, key in found})):
        raise InvalidOption(
            f"{given.verb}({given.kind}={missing[0]!r}): no tenant has a row of that key, since "
            "none of its jobs waits or runs. Give its tenant, too, and the row is made"
        )
    return [pk for pk, _ in found]


def _workers(given: _Names) -> Iterable[int]:
    for name in given.names:
        text = check_text("worker", name)
        found = list(Worker.objects.using(given.using).filter(name=text))
        if not found:
            raise InvalidOption(f"{given.verb}(worker={name!r}): there is no worker of that name")
        yield from [worker.pk for worker in found]


_NAMES: Mapping[str, Callable[[_Names], Iterable[int]]] = {
    "queue": _queues,
    "task": _tasks,
    "session": _sessions,
    "limit_user": _sessions,
    "worker": _workers,
}
"""What finds the rows of names, by the keyword."""
