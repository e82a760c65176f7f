"""Settings of the workers that the tests start: those of the suite, and what a test overrides."""

import json
import os

import django

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS, TENANTQUEUE

INSTALLED_APPS = [*INSTALLED_APPS, "tests.process"]
TENANTQUEUE = {**TENANTQUEUE, **json.loads(os.environ.get("TEST_TENANTQUEUE", "{}"))}
if port := int(os.environ.get("TEST_SMTP_PORT", "0")):
    if django.VERSION >= (6, 1):
        backend = "django.core.mail.backends.smtp.EmailBackend"
        MAILERS = {"default": {"BACKEND": backend, "OPTIONS": {"host": "127.0.0.1", "port": port}}}
    else:
        EMAIL_HOST, EMAIL_PORT = "127.0.0.1", port
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(process)d %(levelname)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {"django_tenantqueue": {"handlers": ["stderr"], "level": "DEBUG"}},
}
