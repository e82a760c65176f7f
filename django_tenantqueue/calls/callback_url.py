"""The call that posts the end of a job to its `callback_url`. See http/end.py."""

from __future__ import annotations

from collections.abc import Callable

from ..exceptions import Unsupported
from .call import Call

Maker = Callable[[str, str], Call]
"""Returns the call for a URL and a tenant. Raises InvalidArgument for what may not be called."""

_makers: list[Maker] = []


def register_maker(maker: Maker) -> None:
    """Let `maker` make the calls."""
    _makers[:] = [maker]


def callback_of(url: str, tenant: str) -> Call:
    """Return the call that posts the end of a job of a tenant. Raises InvalidArgument."""
    if not _makers:
        raise Unsupported("callback_url needs 'django_tenantqueue' in INSTALLED_APPS")
    return _makers[0](url, tenant)
