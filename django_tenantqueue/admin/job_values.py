"""Arguments and result of a job as its page shows them: masked, as indented JSON, bounded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpResponse
from django.utils.formats import localize
from django.utils.translation import gettext

from ..models import Job
from ..states import State
from ..status.display_limits import TEXT
from ..status.masking import COLUMNS, MASK, mask_of_job, masked_columns, split
from .formats import json_text

PARTS = ("arguments", "result")
"""What can be downloaded of a job."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Values with their names. `cut`: how much of them; `missing`: why there is nothing."""

    pairs: Sequence[tuple[str, str]] = ()
    cut: str = ""
    missing: str = ""


def shown_columns(job: Job) -> dict[str, Any]:
    """Return the columns of a job that may hold secret values, masked."""
    names = ("source_type", "source_id", "source_method", *COLUMNS)
    return masked_columns({name: getattr(job, name) for name in names})


def shown_arguments(job: Job) -> Shown:
    """Return the arguments of a job with the names of their parameters, as far as known."""
    if job.arguments_removed:
        return Shown(missing=gettext("They were removed by a retention rule."))
    mask = mask_of_job(job)
    call = mask.call(job.args)
    args, kwargs = split(call)
    if args is None or kwargs is None:
        return _bounded([("args", json_text(call))])
    names = [f"{place} {mask.name_of(place - 1)}".strip() for place in range(1, len(args) + 1)]
    return _bounded(
        [
            (name, json_text(value))
            for name, value in [*zip(names, args, strict=True), *kwargs.items()]
        ]
    )


def shown_result(job: Job) -> Shown | None:
    """Return the result of a job; None while it has not succeeded."""
    if job.state != State.SUCCESS:
        return None
    try:
        value = mask_of_job(job).result(job.result)
    except LookupError as error:
        text = str(error)
        return Shown(missing=f"{text[:1].upper()}{text[1:]}.")
    if value is None:
        return Shown(missing=gettext("The task returned nothing."))
    return _bounded([("", json_text(value))])


def _bounded(pairs: Sequence[tuple[str, str]]) -> Shown:
    whole = sum(len(text) for _, text in pairs)
    if whole <= TEXT:
        return Shown(pairs)
    left, shown = TEXT, []
    for name, text in pairs:
        shown.append((name, text if len(text) <= left else f"{text[:left]}…"))
        left -= len(text)
        if left <= 0:
            break
    cut = gettext("%(shown)s of %(all)s characters are shown.") % {
        "shown": localize(TEXT),
        "all": localize(whole),
    }
    return Shown(shown, cut)


def download_value(job: Job, part: str) -> HttpResponse | None:
    """Return arguments or result as a JSON file, masked; None when there is no such value."""
    if part == "arguments" and job.arguments_removed:
        return None
    mask = mask_of_job(job)
    try:
        value = mask.call(job.args) if part == "arguments" else mask.result(job.result)
    except LookupError:
        return None
    if part not in PARTS or (part == "result" and job.state != State.SUCCESS):
        return None
    try:
        text = json.dumps(value, ensure_ascii=False, indent=2, cls=DjangoJSONEncoder)
    except RecursionError:
        text = json.dumps(MASK)
    response = HttpResponse(text, content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="job-{job.pk}-{part}.json"'
    response["Cache-Control"] = "no-store"
    response["X-Content-Type-Options"] = "nosniff"
    return response
