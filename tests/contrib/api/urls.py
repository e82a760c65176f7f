"""The API under a path of a project's choice, and the admin."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", include("django_tenantqueue.contrib.api.urls")),
]
