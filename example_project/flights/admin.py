"""Admin of the product's own data. The queue's admin comes with django_tenantqueue."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from .models import Airline, Batch, ReportRun
from .tenants import apply_plan


@admin.register(Airline)
class AirlineAdmin(admin.ModelAdmin):
    """Airlines: a change of plan changes slots and weight of the airline's queues."""

    list_display = ("code", "name", "plan", "flight_count")
    list_editable = ("plan",)
    list_filter = ("plan",)
    readonly_fields = ("code", "name", "flight_count")

    def save_model(self, request: HttpRequest, obj: Airline, form: Any, change: bool) -> None:
        """Save, and tune the queues when the plan has changed."""
        super().save_model(request, obj, form, change)
        if "plan" in form.changed_data:
            apply_plan(obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Airlines come with the data."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Airline | None = None) -> bool:
        """Their flights and jobs refer to them."""
        return False


class ReadOnlyAdmin(admin.ModelAdmin):
    """Shows rows that only the reports and the seeder write."""

    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Records are not added here."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Records are not changed."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Records are not deleted."""
        return False


@admin.register(ReportRun)
class ReportRunAdmin(ReadOnlyAdmin):
    """The reports' own records."""

    list_display = (
        *("job_id", "attempt", "airline", "queue", "report"),
        *("started_at", "finished_at", "succeeded", "error"),
    )
    list_filter = ("succeeded", "queue", "airline")


@admin.register(Batch)
class BatchAdmin(ReadOnlyAdmin):
    """Batches of the seeder."""

    list_display = ("id", "requested_at", "job_count")
