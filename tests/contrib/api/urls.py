"""The API under a path of a project's choice."""

from django.urls import include, path

urlpatterns = [path("api/", include("django_tenantqueue.contrib.api.urls"))]
