"""The status views under a path of a project's choice, and pages that show jobs."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template import RequestContext, Template
from django.urls import include, path

from django_tenantqueue.models import Job
from django_tenantqueue.status.your_jobs import your_jobs

HEAD = (
    '<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">'
    '<meta name="color-scheme" content="light dark"><title>Jobs</title>{% load tenantqueue %}'
)
EACH = Template(HEAD + "{% for job in jobs %}{% job_progress job errors=True %}{% endfor %}")
RELOAD = Template(HEAD + "{% for job in jobs %}{% job_progress job reload=True %}{% endfor %}")
LIST = Template(HEAD + '<h1>Your jobs</h1>{% include "tenantqueue/your_jobs.html" %}')


def _answer(request: HttpRequest, template: Template, **context: Any) -> HttpResponse:
    return HttpResponse(template.render(RequestContext(request, context)))


def show_each(request: HttpRequest) -> HttpResponse:
    page = RELOAD if "reload" in request.GET else EACH
    jobs = Job.objects.filter(pk__in=request.GET.getlist("id")).order_by("pk")
    response = _answer(request, page, jobs=jobs)
    response["Content-Security-Policy"] = "default-src 'self'"
    return response


def show_list(request: HttpRequest) -> HttpResponse:
    page = your_jobs(user=request.GET["user"], before=request.GET.get("before"), size=3, stats=True)
    return _answer(request, LIST, page=page)


urlpatterns = [
    path("jobs/", include("django_tenantqueue.web.urls")),
    path("each/", show_each),
    path("list/", show_list),
]
