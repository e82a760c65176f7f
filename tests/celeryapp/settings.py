"""Settings of the dispatchers and Celery workers that the tests start."""

from tests.process.settings import *  # noqa: F403
from tests.process.settings import INSTALLED_APPS, TENANTQUEUE

EXECUTORS = {
    "celery": {
        "BACKEND": "django_tenantqueue.contrib.celery.CeleryExecutor",
        "NEW_QUEUES": ["celery", "celery-*"],
        "OPTIONS": {"app": "tests.celeryapp.app.app"},
    }
}
INSTALLED_APPS = [*INSTALLED_APPS, "tests.celeryapp"]
TENANTQUEUE = {"EXECUTORS": EXECUTORS, **TENANTQUEUE}
