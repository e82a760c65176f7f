"""The site with the HTTP API that the case `api` measures, as `startproject` makes it.

Under gunicorn a thread keeps its connection to the database. Under uvicorn, where each request has
a thread of its own, connections are from a pool.

With BENCHMARK_INSERT=none it does all but the INSERT of a job; with "plain" it inserts the same row
as any other view would, with a cursor of Django.
"""

import os
from itertools import count
from typing import Any

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.urls import include, path

settings.ROOT_URLCONF = __name__
settings.ALLOWED_HOSTS = ["127.0.0.1"]
settings.INSTALLED_APPS += ["django.contrib.messages", "django.contrib.sessions"]
settings.MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
settings.TENANTQUEUE = {"API": {"TASKS": ["benchmarks.*"], "REQUESTS_PER_MINUTE": 10_000_000}}
settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10_000_000
database = settings.DATABASES["default"]
if os.environ["BENCHMARK_SERVER"] == "uvicorn":
    database["OPTIONS"] = {**database.get("OPTIONS", {}), "pool": True}
    application: object = get_asgi_application()
else:
    database["CONN_MAX_AGE"] = None
    application = get_wsgi_application()

if instead := os.environ["BENCHMARK_INSERT"]:
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
        return Job(id=next(ids), state="ready")

    enqueue.enqueue = other_insert

urlpatterns = [path("api/", include("django_tenantqueue.contrib.api.urls"))]
