"""Where results are kept: in the job's row, or in a Django cache."""

from __future__ import annotations

import json

from django.core.cache import caches

from ..calls.arguments import encode_result, size_of
from ..conf import get_settings
from ..exceptions import InvalidResult


def may_use_cache(value: object) -> bool:
    """Whether store_result() may talk to a cache, and so block."""
    settings = get_settings()
    return value is not None and (
        settings.result_store is not None or settings.large_result_store is not None
    )


def store_result(job_id: int, claim_seq: int, value: object) -> tuple[str | None, str | None]:
    """Return (JSON text for the row, reference to a cache); one of them is None.

    Raises InvalidResult for a value that cannot be stored or is too large.
    """
    text = encode_result(value)
    if text is None:
        return None, None
    settings = get_settings()
    alias = settings.result_store
    if alias is None:
        if size_of(text) <= settings.max_result_bytes:
            return text, None
        alias = settings.large_result_store
        if alias is None:
            raise _too_large(
                "the result is",
                text,
                "return less, or set TENANTQUEUE['LARGE_RESULT_STORE'] to the alias of a cache",
            )
    key = f"tenantqueue-result-{job_id}-{claim_seq}"
    caches[alias].set(key, json.loads(text), settings.result_ttl)
    return None, f"{alias}:{key}"


def check_statistics(stats: object) -> None:
    """Raise InvalidResult for statistics that cannot be stored or are too large."""
    text = encode_result(stats, "statistics")
    if text is not None and size_of(text) > get_settings().max_result_bytes:
        raise _too_large("the statistics are", text, "keep them in a table of your own")


def _too_large(what: str, text: str, way_out: str) -> InvalidResult:
    return InvalidResult(
        f"{what} {size_of(text):,} bytes of JSON, more than TENANTQUEUE['MAX_RESULT_BYTES'] = "
        f"{get_settings().max_result_bytes:,}: {way_out}"
    )
