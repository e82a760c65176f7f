"""Retention rules: how long to keep ended jobs."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ...admin.app_list import Use
from ...admin.base import EmptyList
from ...admin.filters import TENANT_FILTERS
from ...admin.formats import breakable
from ...admin.live_admin import TunedAdmin
from ...admin.tenant_input import tenant_text
from . import operations
from .models import RetentionRule


@admin.register(RetentionRule)
class RetentionRuleAdmin(TunedAdmin[RetentionRule]):
    use = Use.AUTOMATION
    export_name = "retention-rules"
    empty_list = EmptyList(
        _("There are no retention rules."),
        _(
            "HISTORY_KEEP_MONTHS decides how long ended jobs are kept. Add a rule to keep those "
            "of a tenant, a task or a state longer or shorter, or to remove their arguments, "
            "results and errors earlier. This command reports what would be removed:"
        ),
        "python manage.py tenantqueue prune --dry-run",
    )
    list_display = ("title", *operations.TUNABLE)
    list_display_links = ("title",)
    list_editable = operations.TUNABLE
    list_filter = ("state", *TENANT_FILTERS)
    search_fields = ("tenant", "task")
    search_help_text = _("A part of the tenant or of the task.")
    ordering = ("tenant", "task", "state")
    actions = ()
    fixed = ("tenant", "task", "state")
    tunable = operations.TUNABLE
    add = staticmethod(operations.add_rule)
    operation = staticmethod(operations.tune_rule)
    delete = staticmethod(operations.delete_rules)
    readonly_fields = ("created_at",)
    fieldsets = (
        (
            _("Scope"),
            {
                "fields": ("tenant", "task", "state"),
                "description": _(
                    "Each number of days comes from the most specific rule that sets it: rules of "
                    "the tenant before rules of every tenant, then rules with a task, then rules "
                    "with a state."
                ),
            },
        ),
        (_("Days"), {"fields": operations.TUNABLE}),
        (_("Now"), {"fields": ("created_at",)}),
    )

    def save_model(self, request: HttpRequest, obj: RetentionRule, form: Any, change: bool) -> None:
        """Write a rule. Warn if nothing is known by the task of a new one."""
        super().save_model(request, obj, form, change)
        if not change and obj.task and "*" not in obj.task:
            self.warn_of_unknown(request, obj.task)

    @admin.display(description=_("jobs"), ordering="tenant")
    def title(self, rule: RetentionRule) -> Any:
        tenant = "" if rule.tenant is None else tenant_text(rule.tenant)
        parts = [tenant, rule.task, rule.get_state_display()]
        return breakable(" / ".join(part for part in parts if part) or gettext("all jobs"))
