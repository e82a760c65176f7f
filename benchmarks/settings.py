"""Django settings of the benchmark and of the workers it starts: the defaults, on $DATABASE_URL."""

import os
from importlib.util import find_spec

import environ

env = environ.Env()

SECRET_KEY = "only-for-benchmarks"
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

NOT_STARTED = "postgres://not-started.invalid/benchmark"
DATABASES = {"default": env.db_url("DATABASE_URL", default=NOT_STARTED)}
if name := os.environ.get("BENCHMARK_APPLICATION"):
    DATABASES["default"].setdefault("OPTIONS", {})["application_name"] = name

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django_tenantqueue",
    "django_tenantqueue.contrib.alerts",
    "django_tenantqueue.contrib.api",
    "django_tenantqueue.contrib.celery",
    "django_tenantqueue.contrib.fireworq",
    "django_tenantqueue.contrib.http",
    "django_tenantqueue.contrib.prometheus",
    "django_tenantqueue.contrib.retention",
    "django_tenantqueue.contrib.routing",
    "django_tenantqueue.contrib.schedules",
    "benchmarks.bench_app",
]
TENANTQUEUE: dict[str, object] = {
    "HTTP": {
        "ALLOWED_HOSTS": ["127.0.0.1"],
        "SECRETS": "benchmarks.bench_app.tasks.secrets_of",
    },
}
TASKS: dict[str, dict[str, object]] = {
    "default": {
        "BACKEND": "django_tenantqueue.contrib.django_tasks.TenantQueueBackend",
        "QUEUES": [],
    }
}
if find_spec("django_tasks_db"):
    INSTALLED_APPS.append("django_tasks_db")
    TASKS["db"] = {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": []}
