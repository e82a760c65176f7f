"""Statements about API tokens, and about the keys of their requests."""

from __future__ import annotations

from ...queries.base import execute, fetch


def touch_token(using: str, token_id: int, every_seconds: float) -> None:
    """Note the use of a token, unless that was done within `every_seconds`. Waits for no lock."""
    execute(using, "touch_token", {"id": token_id, "every_seconds": every_seconds})


def take_idempotency_key(
    using: str, *, token_id: int, key: str, tenant: str, digest: str, keep_seconds: float
) -> int | None:
    """Take a key for a request; return its id, None when another request has it."""
    params = {
        "token_id": token_id,
        "key": key,
        "tenant": tenant,
        "digest": digest,
        "keep_seconds": keep_seconds,
    }
    rows = fetch(using, "take_idempotency_key", params)
    return int(rows[0][0]) if rows else None


def prune_idempotency_keys(using: str, *, keep_seconds: float, most: int) -> int:
    """Delete up to `most` keys older than `keep_seconds`; return how many."""
    params = {"keep_seconds": keep_seconds, "most": most}
    return int(fetch(using, "prune_idempotency_keys", params)[0][0])
