"""An admin site of a project's own, with a model that shows its jobs."""

from typing import Any, ClassVar

from django.contrib import admin
from django.urls import path

from django_tenantqueue.admin import JobAdmin, JobsOfObjectMixin
from django_tenantqueue.models import Job
from tests.testapp.models import Plain, Report


class ReportAdmin(JobsOfObjectMixin, admin.ModelAdmin):
    """The usual case: nothing else is set."""

    list_display = ("title", "rows", "last_job")
    list_editable = ("rows",)


class PlainAdmin(JobsOfObjectMixin, admin.ModelAdmin):
    """It places the jobs itself."""

    class Media:
        css: ClassVar[Any] = {"all": ["own.css"]}

    list_display = ("title", "last_job")
    fieldsets: ClassVar[Any] = [
        ("First", {"fields": ["jobs_of_object"]}),
        ("Then", {"fields": ["title"]}),
    ]


site = admin.AdminSite(name="office")
site.register(Report, ReportAdmin)
site.register(Plain, PlainAdmin)
site.register(Job, JobAdmin)

bare = admin.AdminSite(name="bare")
bare.register(Report, ReportAdmin)

urlpatterns = [
    path("office/", site.urls),
    path("bare/", bare.urls),
    path("admin/", admin.site.urls),
]
