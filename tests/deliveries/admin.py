"""The list of deliveries, like the lists of the queue."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from django_tenantqueue.admin.base import EmptyList, TenantQueueModelAdmin

from .models import Delivery


@admin.register(Delivery)
class DeliveryAdmin(TenantQueueModelAdmin[Delivery]):
    """Deliveries of the tenants that the user may see."""

    export_name = "deliveries"
    empty_list = EmptyList(_("Nothing is on its way."), _("Jobs add deliveries."))
    list_display = ("tenant", "job_id", "due_at")
