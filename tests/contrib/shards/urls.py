"""URLs of a site with shards."""

from django.apps import apps
from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("jobs/", include("django_tenantqueue.web.urls")),
    *(
        path(f"{app}/", include(f"django_tenantqueue.contrib.{app}.urls"))
        for app in ("api", "fireworq")
        if apps.is_installed(f"django_tenantqueue.contrib.{app}")
    ),
]
