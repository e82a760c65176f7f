"""URLs of a site with shards."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", include("django_tenantqueue.contrib.api.urls")),
    path("fireworq/", include("django_tenantqueue.contrib.fireworq.urls")),
    path("jobs/", include("django_tenantqueue.web.urls")),
]
