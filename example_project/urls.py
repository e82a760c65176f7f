"""Addresses of the example project."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("jobs/", include("django_tenantqueue.web.urls")),
    path("api/", include("django_tenantqueue.contrib.api.urls")),
    path("", include("example_project.flights.urls")),
]
