"""Settings of the workers and of the program that torments them."""

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.chaos"]
# Short waits, so that a job comes back while the trouble lasts; every error is kept for the audit.
TENANTQUEUE = {"BACKOFF_BASE": 0.2, "BACKOFF_MAX": 2.0, "MAX_ERRORS": 1000}
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(process)d %(levelname)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {"django_tenantqueue": {"handlers": ["stderr"], "level": "INFO"}},
}
