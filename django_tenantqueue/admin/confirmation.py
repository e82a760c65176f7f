"""The page on which an action asks before it acts, or asks for its values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Model, QuerySet
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.formats import localize
from django.utils.translation import gettext

from ..status.display_limits import LISTED
from .base import TenantQueueModelAdmin

APPLY = "_apply"
"""The field that the page posts: the number of rows that it has shown."""


Rows = Sequence[Model] | Sequence[str] | QuerySet[Any]
"""Rows, or their names."""


def is_answered(request: HttpRequest) -> bool:
    """Whether the request comes from the page that asks."""
    return APPLY in request.POST


def confirm(
    model_admin: TenantQueueModelAdmin[Any], request: HttpRequest, rows: Rows, verb: str, text: str
) -> HttpResponse | None:
    """Return a page that asks whether to do what `verb` says; None after a "Yes".

    That is when the operator has said yes, and when there are no rows. All rows of a list are asked
    about again when their number is not the one that the operator has seen.
    """
    count = _count(rows)
    seen = request.POST.get(APPLY)
    across = request.POST.get("select_across") == "1"
    if not count or (seen is not None and (seen == str(count) or not across)):
        return None
    names = model_admin.opts
    what = {
        "verb": verb,
        "count": localize(count),
        "rows": names.verbose_name if count == 1 else names.verbose_name_plural,
    }
    title = gettext("%(verb)s %(count)s %(rows)s?") % what
    yes = gettext("Yes, %(verb)s %(count)s %(rows)s") % {
        **what,
        "verb": verb[:1].lower() + verb[1:],
    }
    return ask(model_admin, request, rows, title=title, text=text, yes=yes)


def ask(
    model_admin: TenantQueueModelAdmin[Any],
    request: HttpRequest,
    rows: Rows,
    *,
    title: str,
    text: str,
    yes: str,
    sent: Sequence[tuple[str, str]] = (),
    form: Form | None = None,
    heading: str = "",
    notes: Sequence[str] = (),
    back: str = "",
) -> TemplateResponse:
    """Return the page: what will happen to which rows, a form for more values, and the button.

    `heading` stands above the rows. `notes` are warnings. `sent`: more to post than the action of
    a list with its rows, or the button of a page. `back`: the address of the page to go back to;
    "" is this one.
    """
    kept = ("action", "select_across", *model_admin.buttons)
    fields = [(name, request.POST[name]) for name in kept if name in request.POST]
    fields += [(ACTION_CHECKBOX_NAME, pk) for pk in request.POST.getlist(ACTION_CHECKBOX_NAME)]
    count = _count(rows)
    return model_admin.page(
        request,
        "admin/tenantqueue/ask.html",
        title,
        form=form,
        text=text,
        yes=yes,
        names=[str(row) for row in rows[:LISTED]],
        more=max(0, count - LISTED),
        heading=heading,
        notes=notes,
        back=back,
        fields=[*fields, *sent, (APPLY, str(count))],
    )


def _count(rows: Rows) -> int:
    return rows.count() if isinstance(rows, QuerySet) else len(rows)
