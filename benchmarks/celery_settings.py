"""Settings of the dispatcher and the Celery workers that the case `celery` starts."""

from .settings import *  # noqa: F403
from .settings import INSTALLED_APPS, TENANTQUEUE

INSTALLED_APPS = [*INSTALLED_APPS, "django_celery_results"]
TENANTQUEUE = {
    **TENANTQUEUE,
    "EXECUTORS": {
        "celery": {
            "BACKEND": "django_tenantqueue.contrib.celery.CeleryExecutor",
            "OPTIONS": {"app": "benchmarks.bench_app.celery_app.app"},
        }
    },
}
