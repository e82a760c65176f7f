"""The site with the HTTP API that the case `api` measures; gunicorn runs it.

With BENCHMARK_WITHOUT_INSERT it does all but the INSERT of a job.
"""

import os
from itertools import count
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import include, path

settings.ROOT_URLCONF = __name__
settings.ALLOWED_HOSTS = ["127.0.0.1"]
settings.DATABASES["default"]["CONN_MAX_AGE"] = None
settings.TENANTQUEUE = {"API_TASKS": ["benchmarks.*"], "API_REQUESTS_PER_MINUTE": None}
settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10_000_000
application = get_wsgi_application()

if os.environ.get("BENCHMARK_WITHOUT_INSERT"):
    from django_tenantqueue.models import Job
    from django_tenantqueue.operations import enqueue

    ids = count(1)

    def without_insert(*args: Any, **options: Any) -> Job:
        """Return a job that is not stored."""
        return Job(id=next(ids), state="created")

    enqueue.enqueue = without_insert

urlpatterns = [path("api/", include("django_tenantqueue.web.api.urls"))]
