"""The status view under a path of a project's choice."""

from django.urls import include, path

urlpatterns = [path("jobs/", include("django_tenantqueue.web.urls"))]
