"""The follow-ups that a job stores: complete rows, so that nothing is rejected at its end.

They are enqueued in sql/parts/move_to_history.sql.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from ..calls.arguments import size_of
from ..calls.call import Call, check_follow_up, ending_calls
from ..calls.options import Options
from ..conf import get_settings
from ..exceptions import InvalidArgument
from .new_job import gated_row, gates_of, json_head, keyed_call, new_job
from .queues import Target, find_target, queue_id_of


def encode_follow_ups(options: Options, target: Target) -> str | None:
    """Return the follow-ups of a job with these options as JSON; None: it has none.

    `target`: the queue of that job. The queues of the follow-ups are created. Raises QueueRetired,
    and InvalidArgument for what cannot be stored.
    """
    chosen = [("success", call) for call in options.on_success or ()]
    chosen += [("end", call) for call in ending_calls(options, target.tenant)]
    if not chosen:
        return None
    try:
        text = f"[{','.join(_encode(on, call, target, options) for on, call in chosen)}]"
    except RecursionError:
        raise InvalidArgument(
            "on_success= or on_end= is nested too deeply: let one of these jobs enqueue the rest"
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
    check_follow_up(f"on_{on}", call.options)
    options = replace(
        call.options,
        tenant=before.tenant if call.options.tenant is None else call.options.tenant,
        created_by=call.options.created_by or previous.created_by,
    )
    target = find_target(options, call.source.name)
    if target.using != before.using:
        raise InvalidArgument(
            f"on_{on}: the job of tenant {target.tenant!r} would be in the database "
            f"{target.using!r}, and the job before it is in {before.using!r}: let the task enqueue "
            "it instead, with transaction.on_commit()"
        )
    kwargs = dict(call.kwargs)
    args = call.source.encode(call.args, kwargs, follows=True)
    new = new_job(call.source, options, queue_id_of(target, refresh=True), args)
    keyed = keyed_call(call.source, options, target, call.args, kwargs, args)
    gates = gates_of(options, target.tenant, keyed.key)
    row = gated_row(new, options, gates, follow_ups=encode_follow_ups(options, target))
    changes: dict[str, object] = {"on": on, "exclusive_key": gates.exclusive}
    if isinstance(options.expires_at, timedelta):  # it counts from the end of the previous job
        changes |= {"expires_at": None, "expires_seconds": options.expires_at.total_seconds()}
    return f'{json_head(row, **changes)}"args":{args}}}'
