"""Drain and stop workers: the actions of the list, and the buttons of a worker's page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ..models import Worker
from ..operations import worker_control
from .base import TenantQueueModelAdmin
from .confirmation import confirm


class Order(NamedTuple):
    """An order to workers: its name, the column that it sets, and its effect."""

    button: str
    verb: Any
    column: str
    operation: Callable[..., list[int]]
    text: Any


DRAIN = Order(
    "_drain",
    _("Drain"),
    "draining",
    worker_control.drain,
    _(
        "Each process claims no more jobs, finishes its running jobs, however long they take, and "
        "stops. It is not replaced."
    ),
)
STOP = Order(
    "_stop",
    _("Stop"),
    "stopping",
    worker_control.stop,
    _(
        "Each process claims no more jobs and stops after its shutdown timeout at the latest. "
        "Jobs still running then are returned and start again on other workers. It is not "
        "replaced."
    ),
)


class WorkerActions(TenantQueueModelAdmin[Worker]):
    """Asks, orders workers to end, and shows how many did not have the order yet."""

    actions = ("drain_selected", "stop_selected")
    buttons = {DRAIN.button: "drain_selected", STOP.button: "stop_selected"}

    @admin.action(permissions=["change"], description=_("Drain selected workers…"))
    def drain_selected(
        self, request: HttpRequest, queryset: QuerySet[Worker]
    ) -> HttpResponse | None:
        return self._ask_and_tell(request, queryset, DRAIN)

    @admin.action(permissions=["change"], description=_("Stop selected workers…"))
    def stop_selected(
        self, request: HttpRequest, queryset: QuerySet[Worker]
    ) -> HttpResponse | None:
        """Ask, then let workers drain for as long as their shutdown timeout, and stop."""
        return self._ask_and_tell(request, queryset, STOP)

    def _ask_and_tell(
        self, request: HttpRequest, queryset: QuerySet[Worker], order: Order
    ) -> HttpResponse | None:
        """Return the page that asks; None once the order is given."""
        text = str(order.text)
        going_on = Worker.objects.using(self.using).filter(draining=False, stopping=False)
        if not going_on.exclude(pk__in=queryset.values("pk")).exists():
            text += " " + gettext("No other worker is left: jobs wait until you start one.")
        if page := confirm(self, request, queryset, str(order.verb), text):
            return page
        ids = list(queryset.values_list("pk", flat=True))
        done = len(order.operation(ids, using=self.using))
        if order is DRAIN:
            said = ngettext("%d worker drains.", "%d workers drain.", done) % done
        else:
            said = ngettext("%d worker stops:", "%d workers stop:", done) % done
            said += " " + gettext(
                "jobs still running after the shutdown timeout start again on other workers."
            )
        if late := len(ids) - done:
            said += " " + gettext("%d unchanged: asked before, or stopped meanwhile.") % late
        self.message_user(request, said, messages.SUCCESS if done else messages.WARNING)
        return None
