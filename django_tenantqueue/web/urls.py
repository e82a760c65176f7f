"""Include these: `path("jobs/", include("django_tenantqueue.web.urls"))`."""

from __future__ import annotations

from django.urls import path

from ..features import Feature, hooks
from . import views

app_name = "tenantqueue"

urlpatterns = [
    *(pattern for urls in hooks(Feature.urls) for pattern in urls()),
    path("status/", views.job_statuses, name="statuses"),
    path("<str:token>/status/", views.job_status, name="status"),
]
