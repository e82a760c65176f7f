"""What operators do to monitors: retry what failed, cancel."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.core import signing
from django.core.signing import BadSignature
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ..exceptions import InvalidState
from ..models import ConcurrentJobMonitor
from ..operations import monitor_control
from ..operations.control import CLAIM_SECONDS
from ..operations.monitor_retry import FailedRetry
from ..status.display_limits import PAGE
from ..status.monitor_progress import Progress, progress_of
from .base import TenantQueueModelAdmin
from .confirmation import ask, confirm, is_answered

RETRY = "_retry_failed"
"""The button of a monitor's page."""
PLACE = "_place"
"""The position of a retry, in the page that continues it."""
RETRY_SECONDS = CLAIM_SECONDS * 3
"""For how long one request retries: an operator waits for it."""


class MonitorActions(TenantQueueModelAdmin[ConcurrentJobMonitor]):
    """Asks, then acts. Retries are committed step by step, whatever their number."""

    buttons = {RETRY: "retry_failed"}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list. Retries are not part of one long transaction, as edits are."""
        if request.method == "POST" and request.POST.get("action") == "retry_selected":
            return TenantQueueModelAdmin.changelist_view(self, request, extra_context)
        return super().changelist_view(request, extra_context)

    def retry_failed(
        self, request: HttpRequest, queryset: QuerySet[ConcurrentJobMonitor]
    ) -> HttpResponse | None:
        """Ask, then retry the failed details of a monitor; None: back to its page.

        After RETRY_SECONDS the retry continues with the request that the next page makes.
        """
        monitor = queryset.get()
        now = progress_of([monitor])[monitor.pk]
        if not is_answered(request) and now.failed and monitor.cancelled_at is None:
            return self._ask_whether(request, monitor, now)
        retry = self._retry(request, monitor, request.POST.get(PLACE))
        if retry is None or retry.is_done:
            return None
        left = progress_of([monitor])[monitor.pk].failed
        values = {"count": f"{retry.retried:,}", "all": f"{retry.retried + left:,}"}
        page = ask(
            self,
            request,
            [monitor],
            title=gettext("Retrying failed details"),
            text=gettext("%(count)s of %(all)s failed details have been retried so far.") % values,
            yes=gettext("Continue"),
            sent=[(PLACE, _signed(retry))],
        )
        page.template_name = "admin/tenantqueue/concurrentjobmonitor/go_on.html"
        return page

    def _ask_whether(
        self, request: HttpRequest, monitor: ConcurrentJobMonitor, now: Progress
    ) -> HttpResponse:
        count = {"count": f"{now.failed:,}"}
        title = ngettext(
            "Retry %(count)s failed detail?", "Retry %(count)s failed details?", now.failed
        )
        yes = ngettext(
            "Yes, retry %(count)s failed detail", "Yes, retry %(count)s failed details", now.failed
        )
        return ask(
            self, request, [monitor], title=title % count, text=_consequences(now), yes=yes % count
        )

    @admin.action(permissions=["change"], description=_("Retry failed details…"))
    def retry_selected(
        self, request: HttpRequest, queryset: QuerySet[ConcurrentJobMonitor]
    ) -> HttpResponse | None:
        """Ask, then put failed details into the line again."""
        if not is_answered(request):
            found = progress_of(queryset[:PAGE]).values()
            failed = sum(now.failed for now in found)
            text = gettext(
                "The failed details of these monitors are retried with fresh attempts: %s."
            ) % (f"{failed:,}" if len(found) < PAGE else f"{failed:,}+")
            text += " " + gettext("The callback of a monitor that has ended does not run again.")
            if page := confirm(self, request, queryset, gettext("Retry failed details of"), text):
                return page
        for monitor in queryset:
            retry = self._retry(request, monitor)
            if retry is not None and not retry.is_done:
                text = gettext(
                    "%(monitor)s: %(count)s failed details are retried, and some are left. Retry "
                    "them on its page."
                ) % {"monitor": monitor, "count": f"{retry.retried:,}"}
                self.message_user(request, text, messages.WARNING)
        return None

    def _retry(
        self, request: HttpRequest, monitor: ConcurrentJobMonitor, place: str | None = None
    ) -> FailedRetry | None:
        """Retry failed details for RETRY_SECONDS; report their number when all are done.

        `place`: where to continue. None: the monitor was cancelled, or the place is invalid.
        """
        try:
            retry = FailedRetry.start(self.using, monitor.pk)
            if place is not None:
                _go_on_at(retry, place)
        except (InvalidState, BadSignature) as error:
            self.message_user(request, str(error), messages.WARNING)
            return None
        end = time.monotonic() + RETRY_SECONDS
        retry.step()
        while not retry.is_done and time.monotonic() < end:
            retry.step()
        if retry.is_done:
            text = ngettext(
                "%(monitor)s: %(count)s failed detail is retried.",
                "%(monitor)s: %(count)s failed details are retried.",
                retry.retried,
            )
            level = messages.SUCCESS if retry.retried else messages.WARNING
            values = {"monitor": monitor, "count": f"{retry.retried:,}"}
            self.message_user(request, text % values, level)
        return retry

    @admin.action(permissions=["change"], description=_("Cancel selected monitors…"))
    def cancel_selected(
        self, request: HttpRequest, queryset: QuerySet[ConcurrentJobMonitor]
    ) -> HttpResponse | None:
        """Ask, then cancel monitors; maintenance cancels what is left, in steps."""
        what = gettext(
            "Waiting details are cancelled and never start. Running details are asked to stop. "
            "The callback does not run. A cancelled monitor cannot be resumed."
        )
        if page := confirm(self, request, queryset, gettext("Cancel"), what):
            return page
        marked = [
            monitor
            for monitor in queryset
            if monitor_control.mark_cancelled(monitor.pk, self.using)
        ]
        text = ngettext(
            "%d monitor is cancelled, its details within seconds.",
            "%d monitors are cancelled, their details within seconds.",
            len(marked),
        ) % len(marked)
        self.message_user(request, text, messages.SUCCESS if marked else messages.WARNING)
        return None


def _signed(retry: FailedRetry) -> str:
    ended_at, job_id = retry.before
    assert ended_at is not None
    place = [retry.monitor.pk, ended_at.isoformat(), job_id, retry.change_id, retry.retried]
    return signing.dumps(place, salt=RETRY)


def _go_on_at(retry: FailedRetry, place: str) -> None:
    """Continue a retry at the position of another one. Raises BadSignature."""
    monitor_id, ended_at, job_id, retry.change_id, retry.retried = signing.loads(place, salt=RETRY)
    if monitor_id != retry.monitor.pk:
        raise BadSignature(gettext("This page belongs to another monitor."))
    retry.before = (datetime.fromisoformat(ended_at), job_id)


def _consequences(now: Progress) -> str:
    told = gettext(
        "They wait for the monitor again, with fresh attempts and the current “parallel” and "
        "“priority”."
    )
    if now.status == "ended":
        told += " " + gettext(
            "The monitor has ended: its callback does not run again, and it takes no second turn "
            "in its session."
        )
    elif now.status == "ending":
        told += " " + gettext(
            "Its callback is running or about to start, and does not wait for them."
        )
    else:
        told += " " + gettext("Its callback waits for them.")
    if now.status == "paused":
        told += " " + gettext("The monitor is paused: they wait until you resume it.")
    return told
