"""Settings of the workers that the tests start: those of the suite, and what a test overrides."""

import json
import os

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS, TENANTQUEUE

INSTALLED_APPS = [*INSTALLED_APPS, "tests.process"]
TENANTQUEUE = {**TENANTQUEUE, **json.loads(os.environ.get("TEST_TENANTQUEUE", "{}"))}
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(process)d %(levelname)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {"django_tenantqueue": {"handlers": ["stderr"], "level": "DEBUG"}},
}
