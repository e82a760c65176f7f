"""Revocations of links to the statuses of jobs."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.core.exceptions import ValidationError
from django.db.models import BigIntegerField, Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..conf import get_settings
from ..models import Job, StatusLinkRevocation, TenantQueue
from ..operations.status_links import revoke_status_links
from .base import EmptyList, TenantQueueModelAdmin
from .filters import TenantFilter
from .formats import NOTHING, moment
from .links import url_for
from .live_forms import SplitDateTime, hidden_tenant

if TYPE_CHECKING:
    _Form = forms.ModelForm[StatusLinkRevocation]
else:
    _Form = forms.ModelForm


def links_of_job(
    site: AdminSite, request: HttpRequest, using: str, job: Job, tenant: str
) -> SafeString | str:
    """Return which links to the status of a job are revoked, and where to revoke them."""
    rows = StatusLinkRevocation.objects.using(using).filter(
        Q(tenant="") | Q(tenant=tenant), job_id__in=[0, job.pk], user__in=["", job.created_by or ""]
    )
    newest = rows.order_by("-before").first()
    said = ""
    if newest is not None:
        said = format_html("{} {}", gettext("revoked, if made before"), moment(newest.before))
    model_admin = site._registry.get(StatusLinkRevocation)
    url = url_for(site, request, StatusLinkRevocation, None, "add")
    if not url or model_admin is None or not model_admin.has_add_permission(request):
        return said
    given = urlencode({"job_id": str(job.pk), "tenant": tenant})
    return format_html('{} <a href="{}?{}">{}</a>', said, url, given, gettext("Revoke…"))


class RevocationForm(_Form):
    """Whose links to revoke."""

    tenants: ClassVar[Collection[str] | None] = None
    """Tenants that the user sees; None: all."""

    job_id = forms.IntegerField(
        label=_("job"),
        required=False,
        min_value=1,
        max_value=BigIntegerField.MAX_BIGINT,
        help_text=_("The number of a job."),
    )
    user = forms.CharField(
        label=_("user"),
        required=False,
        max_length=500,
        help_text=_("Links to jobs that this user enqueued, or bound to this user: a primary key."),
    )
    before = forms.SplitDateTimeField(
        label=_("made before"),
        required=False,
        widget=SplitDateTime,
        help_text=_("Links that are made later open. Empty: now."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for each in self.fields.values():
            each.label = capfirst(each.label)

    def _get_validation_exclusions(self) -> set[str]:
        """Allow a second revocation of the same links: it moves the time of the first."""
        return {*super()._get_validation_exclusions(), "job_id"}  # type: ignore[misc]

    def clean_before(self) -> Any:
        """Return the time, now when there is none."""
        now = timezone.now()
        before = self.cleaned_data["before"] or now
        if before > now:
            raise ValidationError(gettext("The time must not be in the future."))
        return before

    def clean(self) -> dict[str, Any] | None:
        """Look for the job, and refuse a tenant that the user does not see."""
        values = self.cleaned_data
        tenant, job_id = values.get("tenant", ""), values.get("job_id") or 0
        values["job_id"] = job_id
        if job_id and not self.errors:
            tenant = self._check_job(job_id, tenant)
        is_of_all = not tenant and not job_id
        is_hidden = self.tenants is not None and (is_of_all or tenant not in self.tenants)
        if is_hidden and not self.errors:
            self.add_error("tenant", hidden_tenant(tenant))
        return values

    def _check_job(self, job_id: int, tenant: str) -> str:
        """Return the tenant of a job; note an error when it is not there for the user."""
        using = get_settings().database
        job = Job.objects.using(using).find(job_id)
        queues = TenantQueue.objects.using(using)
        queue = None if job is None else queues.filter(pk=job.queue_id).first()
        found = "" if queue is None else queue.tenant
        if queue is None or (self.tenants is not None and found not in self.tenants):
            self.add_error("job_id", gettext("There is no job %d.") % job_id)
            return tenant
        if tenant and tenant != found:
            self.add_error("tenant", gettext("Job %d is not of this tenant.") % job_id)
        return found


@admin.register(StatusLinkRevocation)
class StatusLinkRevocationAdmin(TenantQueueModelAdmin[StatusLinkRevocation]):
    """Which links no longer open. A revocation is neither changed nor deleted."""

    form = RevocationForm
    changeable = False  # another revocation is added instead
    export_name = "status-link-revocations"
    of_all_tenants = Q(tenant="", job_id=0)
    empty_list = EmptyList(
        _("No links to statuses are revoked."),
        _(
            "A link to the status of a job opens for as long as STATUS_MAX_AGE says. Add a "
            "revocation to close links earlier: of a job, a user, a tenant, or all. Code does it "
            "with"
        ),
        "revoke_status_links(tenant=…)",
    )
    list_display = ("title", "job", "user", "revoked_before")
    list_display_links = ("title",)
    list_filter = (TenantFilter,)
    search_fields = ("tenant", "user")
    search_help_text = _("A part of the tenant or of the user.")
    ordering = ("-before", "-pk")
    actions = ()
    empty_value_display = NOTHING
    readonly_fields = ("title", "job", "revoked_before")
    list_per_page = 50
    fieldsets = (
        (
            None,
            {
                "fields": ("tenant", "job_id", "user", "before"),
                "description": _(
                    "What is empty fits every link, what is given must fit. A revocation cannot be "
                    "taken back."
                ),
            },
        ),
    )

    def get_fieldsets(self, request: HttpRequest, obj: StatusLinkRevocation | None = None) -> Any:
        """Return what to give, or what was given."""
        if obj is None:
            return self.fieldsets
        return ((None, {"fields": ("title", "job", "user", "revoked_before")}),)

    def save_model(
        self, request: HttpRequest, obj: StatusLinkRevocation, form: Any, change: bool
    ) -> None:
        """Revoke."""
        kept = revoke_status_links(
            job=obj.job_id or None,
            user=obj.user or None,
            tenant=obj.tenant or None,
            before=obj.before,
            using=self.using,
        )
        obj.pk, obj.tenant = kept.pk, kept.tenant

    @admin.display(description=_("tenant"), ordering="tenant")
    def title(self, row: StatusLinkRevocation) -> str:
        """Return the tenant whose links are revoked."""
        return row.tenant or gettext("all tenants")

    @admin.display(description=_("job"))
    def job(self, row: StatusLinkRevocation) -> SafeString | str:
        """Return the job, which may be gone."""
        return f"#{row.job_id}" if row.job_id else NOTHING

    @admin.display(description=_("made before"), ordering="before")
    def revoked_before(self, row: StatusLinkRevocation) -> SafeString | str:
        """Return since when links open."""
        return moment(row.before)
