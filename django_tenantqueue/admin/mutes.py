"""Muted problems: the list, the form that mutes, and how the dashboard shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ..exceptions import InvalidOption
from ..features import Condition, Muted, Named
from ..models import Mute
from ..operations import mutes
from ..status.conditions import Look, conditions, objects_of, text_of
from ..status.conditions.muting import by_mute
from ..status.display_limits import PAGE
from .acting import acting
from .app_list import Use
from .base import EmptyList, TenantQueueModelAdmin
from .confirmation import ask
from .filters import TENANT_FILTERS
from .formats import NOTHING, moment, read_number
from .job_forms import MomentField
from .tenant_input import tenant_text
from .visible import is_limited, may, visible_tenants

MORNING = 9
"""The hour of the next day at which a mute “until tomorrow” ends."""
HOUR, TOMORROW, MOMENT = "hour", "tomorrow", "moment"
ALL = "all"
"""The choice of all objects, also of new ones."""


class MuteForm(forms.Form):
    """Until when, and why."""

    how_long = forms.ChoiceField(
        label=_("Mute"),
        choices=(
            (HOUR, _("for 1 hour")),
            (TOMORROW, _("until tomorrow, 9:00")),
            (MOMENT, _("until this time:")),
        ),
        initial=HOUR,
    )
    until = MomentField(label=_("Time"), required=False)
    reason = forms.CharField(
        label=_("Reason"),
        max_length=mutes.LONGEST_REASON,
        help_text=_("Other operators see it, with your name."),
        widget=forms.TextInput({"class": "vTextField"}),
    )

    def clean(self) -> dict[str, Any]:
        """Set `until` to the moment that is meant."""
        cleaned = super().clean() or {}
        now = timezone.localtime()
        match cleaned.get("how_long"):
            case "hour":
                cleaned["until"] = now + timedelta(hours=1)
            case "tomorrow":
                day = (now + timedelta(days=1)).replace(tzinfo=None)
                at = day.replace(hour=MORNING, minute=0, second=0, microsecond=0)
                cleaned["until"] = timezone.make_aware(at)
            case _ if "until" in cleaned:
                try:
                    mutes.read_end(cleaned["until"])
                except InvalidOption:
                    self.add_error("until", ValidationError(gettext("Give a time in the future.")))
        return cleaned


class MuteProblemForm(MuteForm):
    """Which objects, until when, and why."""

    objects = forms.MultipleChoiceField(
        label=_("Of"), widget=forms.CheckboxSelectMultiple, required=True
    )

    def __init__(self, found: Sequence[Named], data: Any = None, *, may_all: bool) -> None:
        """`found`: the objects that have the problem. `may_all`: the user may mute all others."""
        super().__init__(data)
        self.order_fields(["objects"])
        shown = found[:PAGE]
        choices = [(_value(one), str(one)) for one in shown]
        if len(shown) == 1 and not shown[0].key:
            del self.fields["objects"]
            self._only = [(shown[0].tenant, "")]
            return
        self._only = []
        if may_all:
            choices.append((ALL, gettext("all, also those that have it later")))
        self.fields["objects"].choices = choices  # type: ignore[attr-defined]
        self.initial["objects"] = [_value(one) for one in shown]

    @property
    def chosen(self) -> list[mutes.Object]:
        """The objects to mute."""
        values = self.cleaned_data.get("objects")
        if values is None:
            return self._only
        if ALL in values:
            return [(None, "")]
        return [(tenant, key) for tenant, key in map(json.loads, values)]


def _value(one: Named) -> str:
    return json.dumps([one.tenant, one.key], ensure_ascii=False)


def mute_url(code: str) -> str:
    """Return the address of the page that mutes a problem."""
    return f"{reverse('admin:tenantqueue_mute_problem')}?{urlencode({'code': code})}"


def may_mute(request: HttpRequest, objects: Sequence[Named]) -> bool:
    """Return whether the user may mute the problem of some of these objects."""
    return may(request, "add", Mute) and bool(_mutable(request, objects))


def _mutable(request: HttpRequest, objects: Sequence[Named]) -> list[Named]:
    tenants = visible_tenants(request)
    if tenants is None:
        return list(objects)
    return [one for one in objects if one.tenant is not None and one.tenant in tenants]


def muted_text(muted: Muted) -> str:
    """Return until when a problem is muted, by whom and why."""
    return mute_text(muted.until, muted.by, muted.reason)


def mute_text(until: datetime, by: str, reason: str) -> str:
    """Return until when something is muted, by whom and why."""
    return gettext("until %(until)s, by %(by)s: %(reason)s") % {
        "until": f"{timezone.localtime(until):%Y-%m-%d %H:%M}",
        "by": by or NOTHING,
        "reason": reason,
    }


def unmute(request: HttpRequest, ids: Sequence[str]) -> None:
    """End the mutes of these ids that the user may see. Raises PermissionDenied."""
    model_admin = admin.site._registry.get(Mute)
    if not may(request, "delete", Mute) or not isinstance(model_admin, MuteAdmin):
        raise PermissionDenied
    known = [number for number in map(read_number, ids) if number is not None]
    rows = model_admin.get_queryset(request).filter(pk__in=known)
    model_admin.end(request, rows)


@admin.register(Mute)
class MuteAdmin(TenantQueueModelAdmin[Mute]):
    """Shows what is muted, and ends mutes before their time. The dashboard mutes."""

    addable = changeable = False
    use = Use.SYSTEM
    export_name = "muted-problems"
    empty_list = EmptyList(
        _("No problem is muted."), _("Mute one on the dashboard, where it is listed.")
    )
    list_display = ("problem", "target", "ends", "reason", "by", "made")
    list_filter = TENANT_FILTERS
    actions = ("unmute_selected",)
    fields = ("problem", "target", "ends", "reason", "by", "made")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Mute]:
        """Leave out mutes that have ended."""
        return super().get_queryset(request).filter(until__gt=timezone.now())

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.problem_view)
        return [path("problem/", view, name="tenantqueue_mute_problem"), *super().get_urls()]

    def has_unmute_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may end mutes."""
        return may(request, "delete", Mute)

    @admin.action(permissions=["unmute"], description=_("Unmute selected problems"))
    def unmute_selected(self, request: HttpRequest, queryset: QuerySet[Mute]) -> None:
        self.end(request, queryset)

    def end(self, request: HttpRequest, rows: QuerySet[Mute]) -> None:
        """End mutes, and say how many."""
        chosen = Mute.objects.filter(pk__in=list(rows.values_list("pk", flat=True)))
        with acting(request):
            done = len(mutes.unmute(self.using, chosen))
        text = ngettext(
            "%d problem is not muted any more.", "%d problems are not muted any more.", done
        )
        self.message_user(request, text % done, messages.SUCCESS if done else messages.WARNING)

    def problem_view(self, request: HttpRequest) -> HttpResponse:
        """Ask which objects of a problem to mute, until when, and why; or mute them."""
        if not may(request, "add", Mute):
            raise PermissionDenied
        condition = _condition(request, request.GET.get("code", ""))
        found, text = ([], "") if condition is None else self._find(request, condition)
        back = HttpResponseRedirect(reverse("admin:app_list", args=["tenantqueue"]))
        if condition is None or not found:
            self.message_user(request, gettext("This problem has ended."), messages.WARNING)
            return back
        is_post = request.method == "POST"
        may_all = not is_limited(request)
        form = MuteProblemForm(found, request.POST if is_post else None, may_all=may_all)
        if is_post and form.is_valid():
            values = {name: form.cleaned_data[name] for name in ("until", "reason")}
            with acting(request):
                mutes.mute(self.using, condition.code, form.chosen, **values)
            said = mute_text(values["until"], request.user.get_username(), values["reason"])
            self.message_user(request, gettext("Muted %s") % said, messages.SUCCESS)
            return back
        return ask(
            self,
            request,
            [],
            title=gettext("Mute a problem"),
            text=text,
            yes=gettext("Mute"),
            form=form,
            back=back.url,
            notes=[
                gettext(
                    "A muted problem is folded on the dashboard and does not count there or in "
                    "“tenantqueue status”. Alert rules still send their messages."
                )
            ],
        )

    def _find(self, request: HttpRequest, condition: Condition) -> tuple[list[Named], str]:
        """Return the objects that the user may mute, and the sentence about them."""
        assert condition.find is not None
        look = Look(self.using, visible_tenants(request))
        found: list[Named] = []
        texts = []
        for values in condition.find(look):
            groups = by_mute(condition.code, objects_of(values), look.mutes)
            objects = [one for muted, named in groups if muted is None for one in named]
            if objects := _mutable(request, objects):
                found += objects
                texts.append(text_of(condition, values, objects))
        text = "; ".join(texts)
        return found, text[:1].upper() + text[1:]

    @admin.display(description=_("problem"), ordering="code")
    def problem(self, mute: Mute) -> str:
        titles = {condition.code: condition.title for condition in conditions()}
        return str(titles.get(mute.code) or mute.code)

    @admin.display(description=_("object"), ordering="tenant")
    def target(self, mute: Mute) -> str:
        name = mute.name or gettext("all")
        return name if mute.tenant is None else f"{tenant_text(mute.tenant)} / {name}"

    @admin.display(description=_("until"), ordering="until")
    def ends(self, mute: Mute) -> SafeString | str:
        return moment(mute.until)

    @admin.display(description=_("muted by"), ordering="actor")
    def by(self, mute: Mute) -> str:
        return mute.actor or NOTHING

    @admin.display(description=_("muted"), ordering="made_at")
    def made(self, mute: Mute) -> SafeString | str:
        return moment(mute.made_at)


def _condition(request: HttpRequest, code: str) -> Condition | None:
    """Return the condition of a code if the user may see it."""
    for condition in conditions():
        if condition.code == code and condition.find is not None:
            return condition if condition.of_tenants or not is_limited(request) else None
    return None
