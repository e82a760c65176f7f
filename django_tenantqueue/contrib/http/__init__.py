"""Jobs that POST JSON to an endpoint: `http_job.delay(url, payload)`. Needs the extra `[http]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .callback_url import post_end
    from .job import http_job

__all__ = ["http_job", "post_end"]


def __getattr__(name: str) -> Any:
    """Import the tasks at their first use: Django imports this before all models are known."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import callback_url, job

    return job.http_job if name == "http_job" else callback_url.post_end
