"""Include these: `path("jobs/", include("django_tenantqueue.web.urls"))`."""

from __future__ import annotations

from django.urls import path

from . import metrics, views

app_name = "tenantqueue"

urlpatterns = [
    path("metrics", metrics.metrics, name="metrics"),
    path("status/", views.job_statuses, name="statuses"),
    path("<str:token>/status/", views.job_status, name="status"),
]
