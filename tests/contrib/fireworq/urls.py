"""The API of Fireworq under a path of a project's choice."""

from django.urls import include, path

urlpatterns = [
    path("jobs/", include("django_tenantqueue.web.urls")),
    path("fireworq/", include("django_tenantqueue.contrib.fireworq.urls")),
]
