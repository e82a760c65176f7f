"""Maintenance tasks: what was done last, when, and by whom."""

from __future__ import annotations

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..models import Duty
from .app_list import Use
from .base import EmptyList, TenantQueueModelAdmin
from .formats import NOTHING, badge, duration_text, failure_text, moment, number, unbroken


@admin.register(Duty)
class DutyAdmin(TenantQueueModelAdmin[Duty]):
    """Shows the fleet's maintenance; nothing can be set."""

    addable = changeable = False  # the worker that does a duty writes its row
    use = Use.SYSTEM
    export_name = "duties"
    empty_list = EmptyList(
        _("No maintenance has been done yet."),
        _("Workers perform it. Start one with"),
        "python manage.py runworker",
    )
    list_display = ("name", "status", "ran", "took", "times", "worker", "did", "failure")
    fields = ("name", "status", ("ran", "took", "times"), "worker", "did", "last_failure")

    @admin.display(description=_("state"), ordering="error")
    def status(self, duty: Duty) -> SafeString:
        return badge("error", gettext("failed")) if duty.error else badge("held", gettext("OK"))

    @admin.display(description=_("last run"), ordering="-ran_at")
    def ran(self, duty: Duty) -> SafeString | str:
        return moment(duty.ran_at)

    @admin.display(description=_("duration"), ordering="-duration_seconds")
    def took(self, duty: Duty) -> SafeString:
        return unbroken(duration_text(duty.duration_seconds))

    @admin.display(description=_("runs"), ordering="-runs")
    def times(self, duty: Duty) -> SafeString:
        return number(f"{duty.runs:,}")

    @admin.display(description=_("last result"), ordering="-acted_at")
    def did(self, duty: Duty) -> SafeString | str:
        if duty.acted_at is None:
            return NOTHING
        return format_html("{} <small>{}</small>", duty.outcome, moment(duty.acted_at))

    @admin.display(description=_("error"))
    def failure(self, duty: Duty) -> SafeString | str:
        return failure_text(duty.error, duty.ran_at)

    @admin.display(description=_("error"))
    def last_failure(self, duty: Duty) -> SafeString | str:
        return format_html("<pre>{}</pre>", duty.error) if duty.error else NOTHING
