"""Connects HTTP jobs to the core."""

from __future__ import annotations

from collections.abc import Iterable

from ...calls.call import Call
from ...calls.options import Options
from ...features import Feature
from .callback_url import end_call
from .settings import HttpSettings


class Http(Feature):
    """See features.py for when each method is called."""

    settings = HttpSettings

    def ready(self) -> None:
        from . import callback_url, job  # noqa: F401 - workers must know their tasks

    def follow_ups(self, options: Options, tenant: str) -> Iterable[Call]:
        return () if options.callback_url is None else (end_call(options.callback_url, tenant),)
