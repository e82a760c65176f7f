"""The site with the HTTP API that the case `api` measures; gunicorn runs it.

With BENCHMARK_INSERT=none it does all but the INSERT of a job; with "plain" it inserts the same row
as any other view would, with a cursor of Django.
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

instead = os.environ.get("BENCHMARK_INSERT")
if instead is not None:
    from django.db import connection

    from benchmarks.bench_app.tasks import noop_async
    from benchmarks.cases.enqueue import bare_insert
    from django_tenantqueue.models import Job
    from django_tenantqueue.operations import enqueue

    ids = count(1)
    connection.ensure_connection()
    statement, values = bare_insert(connection.connection, noop_async.using(tenant="wide").delay())

    def other_insert(*args: Any, **options: Any) -> Job:
        """Return a job that is not stored, or whose row was made by a plain INSERT."""
        if instead == "plain":
            with connection.cursor() as cursor:
                cursor.execute(statement.decode(), values)
        return Job(id=next(ids), state="created")

    enqueue.enqueue = other_insert

urlpatterns = [path("api/", include("django_tenantqueue.web.api.urls"))]
