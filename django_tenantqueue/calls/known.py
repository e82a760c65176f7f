"""What this process knows about the task of a job. It imports and loads nothing."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from django.apps import apps

from .secret_option import Secret
from .sources import INTERNAL, is_of_instances, known_task, signature_of


def known_secret(source_type: str, source_method: str) -> Secret | None:
    """Return the secrets that a job's task declares; None: none, or the task is unknown here."""
    task = known_task(source_type, source_method)
    return None if task is None else task.source.secret


def known_signature(
    source_type: str, source_id: str, source_method: str
) -> inspect.Signature | None:
    """Return the signature of what a job calls, as its arguments see it; None: unknown."""
    found = _find(source_type, source_id, source_method)
    if found is None:
        return None
    func, drops_first = found
    try:
        signature = signature_of(func)
    except (TypeError, ValueError):  # of what is written in C
        return None
    if not drops_first:
        return signature
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def _find(source_type: str, source_id: str, method: str) -> tuple[Callable[..., Any], bool] | None:
    """Return a function, and whether its first argument is the instance."""
    if source_type in ("task", INTERNAL):
        task = known_task(source_type, method)
        return None if task is None else (task.func, False)
    if source_type == "callable":
        func = _loaded(method)
        return (func, False) if callable(func) else None
    owner = _loaded(source_id) if source_type == "class" else _model(source_type)
    if not isinstance(owner, type):
        return None
    func = getattr(owner, method, None)
    return (func, is_of_instances(owner, method, func)) if callable(func) else None


def _model(source_type: str) -> type | None:
    try:
        return apps.get_model(source_type.partition("@")[0])
    except (LookupError, ValueError):
        return None


def _loaded(path: str) -> Any:
    """Return what `module:qualified.name` is, if the module is imported already."""
    module, _, qualname = path.partition(":")
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found
