"""A change as operators read it: what it was done to, and each value before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from django.core.exceptions import FieldDoesNotExist
from django.db.models import Field, Model
from django.urls import NoReverseMatch, reverse
from django.utils.formats import localize
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..bulk import REASONS
from ..models import Change
from ..models.change import kind_text, models_by_kind
from ..status.display_limits import LINE, LISTED
from .formats import NOTHING, exact_text, moment, parse_moment, value_text
from .tenant_input import tenant_text

COUNTS: dict[str, Any] = {
    "cancelled": _("cancelled"),
    "asked_to_stop": _("asked to stop"),
    "retried": _("retried"),
    "retried_details": _("failed details retried"),
    "error": _("error"),
    "queue": _("queue"),
    "job": _("job"),
    "jobs": _("jobs"),
    "cause": _("cause"),
    "arguments": _("changed arguments"),
    "priority_scope": "PRIORITY_SCOPE",
    "down_to": _("processed down to job"),
    **{
        reason: format_lazy(_("skipped, because {why}:"), why=why)
        for reason, why in REASONS.items()
    },
}
"""What entries call values that are no columns of the object."""


@dataclass(frozen=True, slots=True)
class Described:
    """The parts of a line about a change, as HTML."""

    when: SafeString | str
    who: str
    source: str
    action: str
    target: SafeString
    values: SafeString | str


def described(change: Change) -> Described:
    """Return what a line shows of a change."""
    return Described(
        moment(change.made_at),
        change.actor or NOTHING,
        change.get_source_display(),
        change.get_action_display(),
        target(change),
        values_text(change),
    )


def only_of(change: Change, row: Model, tenant: str) -> Change:
    """Return an entry as users read it who see the tenant of `row`, and perhaps no other one.

    An entry about objects of several tenants says nothing but who did what, and when.
    """
    if change.object_count > 1 and (not tenant or change.tenant != tenant):
        change.object_ids, change.object_count, change.object_label = [row.pk], 1, str(row)
        change.before, change.after = {}, {}
    return change


def target(change: Change) -> SafeString:
    """Return what was changed: one object with a link to it, or how many."""
    kind = kind_text(change.object_kind)
    if change.object_count == 1:
        number = "" if change.object_label else f" #{change.object_ids[0]}"
        text = change.object_label or f"{kind}{number}"
        url = url_of(change.object_kind, change.object_ids[0])
        link = format_html('<a href="{}">{}</a>', url, text) if url else format_html("{}", text)
        if change.object_kind == Change.Kind.JOB and change.object_label:
            link = format_html("{} #{}", link, change.object_ids[0])
        return format_html("{}<br><small>{}</small>", link, kind)
    model = models_by_kind().get(change.object_kind)
    many = kind if model is None else model._meta.verbose_name_plural
    return format_html(
        '<span title="{}">{} {}</span><br><small>{}</small>',
        ids_text(change),
        localize(change.object_count),
        many,
        change.object_label,
    )


def ids_text(change: Change) -> str:
    """Return the first numbers of the objects."""
    shown = ", ".join(f"#{number}" for number in change.object_ids[:LISTED])
    return shown + (", …" if change.object_count > LISTED else "")


def url_of(kind: str, object_id: int) -> str:
    """Return the address of an object's page; "" when the admin has none."""
    model = models_by_kind().get(kind)
    if model is None:
        return ""
    opts = model._meta
    try:
        return reverse(f"admin:{opts.app_label}_{opts.model_name}_change", args=[object_id])
    except NoReverseMatch:
        return ""


def values_text(change: Change) -> SafeString | str:
    """Return each value that was changed: from what, to what."""
    before, after = _dict(change.before), _dict(change.after)
    lines = [
        (_label(change.object_kind, name), _arrow(change.object_kind, name, before, after))
        for name in dict.fromkeys((*before, *after))
    ]
    return format_html_join(mark_safe("<br>"), "{} {}", lines) if lines else NOTHING


def _dict(value: Any) -> dict[str, Any]:
    """Return what a column holds, if raw SQL has not written something else."""
    return value if isinstance(value, dict) else {}


def _arrow(kind: str, name: str, before: dict[str, Any], after: dict[str, Any]) -> str:
    field = _field(kind, name) if name == "tenant" else None
    text = tenant_text if field is not None and field.null else _text
    if name not in before:
        return text(after[name])
    if name not in after:
        return gettext("was %s") % text(before[name])
    return f"{text(before[name])} → {text(after[name])}"


def _label(kind: str, name: str) -> str:
    if name in COUNTS:
        return str(COUNTS[name])
    field = _field(kind, name)
    return name if field is None else str(field.verbose_name)


def _field(kind: str, name: str) -> Field[Any, Any] | None:
    try:
        return cast("Field[Any, Any]", models_by_kind()[kind]._meta.get_field(name))
    except (KeyError, FieldDoesNotExist):
        return None


def _text(value: Any) -> str:
    if isinstance(value, bool) or value in (None, ""):
        return value_text(value)
    if isinstance(value, list):
        return ", ".join(_text(one) for one in value)
    if isinstance(value, str) and "T" in value and (at := parse_moment(value)) is not None:
        return exact_text(at) if at.tzinfo else value
    text = str(value)
    return text if len(text) <= LINE else f"{text[:LINE]}…"
