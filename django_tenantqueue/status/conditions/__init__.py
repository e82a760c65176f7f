"""What may be wrong: each condition once, for pages, commands, metrics and answers about jobs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db import connections
from django.utils.translation import gettext

from ...features import Condition, Feature, Named, Problem, hooks, undone_alone
from ..display_limits import NAMED
from .core import CORE, Code
from .found import names
from .look import Look
from .muting import by_mute

__all__ = ["Code", "Condition", "Look", "conditions", "listed_text", "names", "of", "problems"]
__all__ += ["objects_of", "sentence", "text_of"]

logger = logging.getLogger("django_tenantqueue")
_OF_CORE = {condition.code: condition for condition in CORE}


def conditions() -> list[Condition]:
    """Return all conditions: those of the core, the worst first, then those of features."""
    return [*CORE, *(found for hook in hooks(Feature.conditions) for found in hook())]


def of(code: str) -> Condition:
    """Return a condition of the core."""
    return _OF_CORE[code]


def sentence(text: Any, values: Mapping[str, Any]) -> str:
    """Return a text of a condition with its values."""
    return str(text % values) if values else str(text)


def problems(look: Look) -> list[Problem]:
    """Return the conditions that hold of the fleet, the worst first, those that are muted, too."""
    return list(_problems(look))


def _problems(look: Look) -> Iterator[Problem]:
    of_apps = []
    for condition in conditions():
        if condition.find is None or (look.tenants is not None and not condition.of_tenants):
            continue
        if _OF_CORE.get(condition.code) is condition:
            yield from _found(condition, look)
        else:
            of_apps.append(condition)
    yield from _found_by_apps(of_apps, look)


def _found(condition: Condition, look: Look) -> Iterator[Problem]:
    assert condition.find is not None
    for values in condition.find(look):
        for muted, objects in by_mute(condition.code, objects_of(values), look.mutes):
            yield Problem(
                condition.code,
                text_of(condition, values, objects),
                condition.where,
                condition.filter,
                str(condition.remedy) if condition.remedy else "",
                values.get("task", ""),
                objects,
                muted,
            )


def text_of(condition: Condition, values: Mapping[str, Any], objects: Sequence[Named]) -> str:
    """Return the sentence about some objects of a problem."""
    told = dict(values)
    if "names" in values:
        told["names"] = listed_text(objects)
    if jobs := sum(one.jobs for one in objects):
        told |= {"count": jobs, "jobs": f"{jobs:,}"}
    return sentence(condition.fleet, told)


def objects_of(values: Mapping[str, Any]) -> list[Named]:
    """Return the objects of a problem: its names, its task or maintenance task, or one unnamed."""
    if values.get("names"):
        return [name if isinstance(name, Named) else Named(name) for name in values["names"]]
    return [Named(str(values.get("task") or values.get("duty") or ""))]


def _found_by_apps(of_apps: Sequence[Condition], look: Look) -> list[Problem]:
    """Return the same of apps: all at once, or each alone when one of them fails."""
    try:
        with undone_alone(look.using):
            return [problem for condition in of_apps for problem in _found(condition, look)]
    except Exception:  # noqa: BLE001 - the error is raised again below, and shown
        return [problem for condition in of_apps for problem in _found_by_app(condition, look)]


def _found_by_app(condition: Condition, look: Look) -> list[Problem]:
    """Return the same of an app. Its error becomes a problem, and the others are still shown."""
    try:
        with undone_alone(look.using):
            return list(_found(condition, look))
    except Exception as error:
        raw = connections[look.using].connection
        if raw is None or raw.closed:
            raise
        logger.exception("checking condition %s failed", condition.code)
        what = f"{gettext('error')} ({type(error).__name__})"  # its text may be of other tenants
        return [Problem(condition.code, f"{condition.title or condition.code}: {what}", "")]


def listed_text(found: Sequence[str]) -> str:
    """Return the first NAMED of some names, and how many more there are."""
    listed = ", ".join(found[:NAMED])
    if len(found) <= NAMED:
        return listed
    return gettext("%(names)s and %(count)d more") % {"names": listed, "count": len(found) - NAMED}
