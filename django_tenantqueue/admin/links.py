"""Links from one page of the admin to another, for those who may follow them."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.admin import AdminSite
from django.db.models import Model
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from ..models import Job


def url_for(
    site: AdminSite, request: HttpRequest, model: type[Model], pk: object, page: str = "change"
) -> str:
    """Return the address of a row's page; "" when there is none, or the user may not view it."""
    model_admin = site._registry.get(model)
    if model_admin is None or not model_admin.has_view_or_change_permission(request):
        return ""
    args = [] if page in ("add", "changelist") else [pk]
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
    try:
        return reverse(name, args=args, current_app=site.name)
    except NoReverseMatch:
        return ""


def job_url(job_id: int, site: AdminSite | None = None) -> str:
    """Return the address of a job's page, by default on Django's own site."""
    current_app = None if site is None else site.name
    return reverse("admin:tenantqueue_job_change", args=[job_id], current_app=current_app)


def jobs_url(**query: str | int) -> str:
    """Return the address of the list of jobs with some filters."""
    return f"{reverse('admin:tenantqueue_job_changelist')}?{urlencode(query)}"


def job_link(job_id: int) -> SafeString:
    """Return the number of a job, linked to its page."""
    return format_html('<a href="{}" class="tq-number">#{}</a>', job_url(job_id), job_id)


def link_to(
    site: AdminSite, request: HttpRequest, model: type[Model], pk: object, text: object
) -> SafeString:
    """Return a text, linked to a row's page for those who may view it."""
    url = url_for(site, request, model, pk)
    return format_html('<a href="{}">{}</a>', url, text) if url else format_html("{}", text)


def job_links(site: AdminSite, request: HttpRequest, jobs: Iterable[Job]) -> SafeString:
    """Return the numbers of jobs, linked to their pages for those who may view them."""
    links = ((link_to(site, request, Job, job.pk, f"#{job.pk}"),) for job in jobs)
    return format_html_join(", ", "{}", links)
