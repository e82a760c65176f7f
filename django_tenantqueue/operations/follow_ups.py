"""What a job stores of those that its end enqueues: complete rows, so that nothing is refused then.

Where they are enqueued: sql/parts/move_to_history.sql.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta

from ..calls.arguments import size_of
from ..calls.call import Call, check_follow_up, ending_calls
from ..calls.options import Options
from ..conf import get_settings
from ..exceptions import InvalidArgument
from .new_job import SHARED, gates_of, keyed_call, new_job
from .queues import Target, find_target, queue_id_of


def encode_follow_ups(options: Options, target: Target) -> str | None:
    """Return what a job with these options stores of what follows it, as JSON; None: nothing.

    `target`: where that job goes. The queues of those that follow are made. Raises QueueRetired,
    and InvalidArgument for what cannot be stored.
    """
    chosen = [("success", call) for call in options.then or ()]
    chosen += [("end", call) for call in ending_calls(options, target.tenant)]
    if not chosen:
        return None
    try:
        text = f"[{','.join(_encode(on, call, target, options) for on, call in chosen)}]"
    except RecursionError:
        raise InvalidArgument(
            "then= is nested too deeply: let one of these jobs enqueue the rest"
        ) from None
    size, most = size_of(text), get_settings().max_argument_bytes
    if size > most:
        raise InvalidArgument(
            f"what follows the job is {size:,} bytes of JSON, more than "
            f"TENANTQUEUE['MAX_ARGUMENT_BYTES'] = {most:,}: store what is large and pass its id, "
            "or let one of these jobs enqueue the rest"
        )
    return text


def _encode(on: str, call: Call, before: Target, previous: Options) -> str:
    """Return one of them as a JSON object, with all that follows it in turn.

    It belongs to the tenant and the user of the previous job, unless its call names others.
    """
    check_follow_up("then", call.options)
    options = replace(
        call.options,
        tenant=before.tenant if call.options.tenant is None else call.options.tenant,
        created_by=call.options.created_by or previous.created_by,
    )
    target = find_target(options, call.source.name)
    kwargs = dict(call.kwargs)
    args = call.source.encode(call.args, kwargs, follows=True)
    new = new_job(call.source, options, queue_id_of(target, refresh=True), args)
    keyed = keyed_call(call.source, options, target, call.args, kwargs, args)
    gates = gates_of(options, target.tenant, keyed.key)
    row: dict[str, object] = {
        "on": on,
        **{name: new[name] for name in ("lane", "priority", *SHARED)},  # type: ignore[literal-required]
        "run_at": new["run_at"] and new["run_at"].isoformat(),
        "delay_seconds": new["delay_seconds"] if new["delay_seconds"] > 0 else None,
        **_expiry(options.expires_at),
        "session_key": gates.session,
        "session_skip": options.on_wait == "skip" or None,
        "session_halt": gates.halts or None,
        "user_key": gates.user,
        "exclusive_key": gates.exclusive,
        "unique_mode": None if options.unique is None else options.unique.mode,
    }
    texts = {"args": args, "context": new["context"]}
    texts["follow_ups"] = encode_follow_ups(options, target)
    head = json.dumps({name: value for name, value in row.items() if value is not None})
    tail = [f'"{name}":{text}' for name, text in texts.items() if text is not None]
    return f"{head[:-1]},{','.join(tail)}}}"


def _expiry(expires_at: datetime | timedelta | None) -> dict[str, object]:
    """Return when it expires: at a moment, or some time after the end of the previous job."""
    if isinstance(expires_at, timedelta):
        return {"expires_seconds": expires_at.total_seconds()}
    return {"expires_at": expires_at and expires_at.isoformat()}
