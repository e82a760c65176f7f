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

from ..models import Job, TenantQueue
from .formats import NOTHING, breakable


def job_url(job_id: int, site: AdminSite | None = None, page: str = "change", *of: str) -> str:
    """Return the address of a page of a job, by default on Django's own site."""
    name, current_app = f"admin:tenantqueue_job_{page}", None if site is None else site.name
    return reverse(name, args=[job_id, *of], current_app=current_app)


def jobs_url(**query: str | int) -> str:
    """Return the address of the list of jobs with some filters."""
    return f"{reverse('admin:tenantqueue_job_changelist')}?{urlencode(query)}"


def tenant_url(tenant: str) -> str:
    """Return the address of a tenant's page; "" is no tenant."""
    return f"{reverse('admin:tenantqueue_tenant')}?{urlencode({'tenant': tenant})}"


def tenant_link(tenant: str) -> SafeString:
    """Return the name of a tenant, linked to its page."""
    return format_html('<a href="{}">{}</a>', tenant_url(tenant), tenant or NOTHING)


def task_url(task: str, **query: str | int) -> str:
    """Return the address of a task's page; `tenant` in the query: about this tenant's jobs."""
    return f"{reverse('admin:tenantqueue_task')}?{urlencode({'task': task, **query})}"


def task_link(task: str) -> SafeString:
    """Return the name of a task, linked to its page."""
    return format_html('<a href="{}">{}</a>', task_url(task), breakable(task))


def place_link(queue: TenantQueue) -> SafeString:
    """Return the name of a queue as "tenant / queue", each linked to its page."""
    url = reverse("admin:tenantqueue_tenantqueue_change", args=[queue.pk])
    return format_html('{} / <a href="{}">{}</a>', tenant_link(queue.tenant), url, queue.name)


def job_link(job_id: int) -> SafeString:
    """Return the number of a job, linked to its page."""
    return format_html('<a href="{}" class="tq-number">#{}</a>', job_url(job_id), job_id)


def link_to(
    site: AdminSite, request: HttpRequest, model: type[Model], pk: object, text: object
) -> SafeString:
    """Return a text, linked to a row's page if there is one and the user may view it."""
    model_admin = site._registry.get(model)
    if model_admin is None or not model_admin.has_view_or_change_permission(request):
        return format_html("{}", text)
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
    try:
        url = reverse(name, args=[pk], current_app=site.name)
    except NoReverseMatch:
        return format_html("{}", text)
    return format_html('<a href="{}">{}</a>', url, text)


def job_links(site: AdminSite, request: HttpRequest, jobs: Iterable[Job]) -> SafeString:
    """Return the numbers of jobs, linked to their pages for those who may view them."""
    links = ((link_to(site, request, Job, job.pk, f"#{job.pk}"),) for job in jobs)
    return format_html_join(", ", "{}", links)
