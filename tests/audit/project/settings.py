"""Settings as a user would write them; the tests choose the database and CONN_MAX_AGE."""

import os

import environ

env = environ.Env()

SECRET_KEY = "only-for-tests"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
DATABASES = {"default": env.db_url("DATABASE_URL")}
DATABASES["default"]["CONN_MAX_AGE"] = int(os.environ["AUDIT_CONN_MAX_AGE"])
INSTALLED_APPS = ["django_tenantqueue", "tests.audit.project"]
# what a crash has cost an innocent job is tried again soon
TENANTQUEUE = {"BACKOFF_BASE": 0.1, "BACKOFF_MAX": 0.2}
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(process)d %(levelname)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {"django_tenantqueue": {"handlers": ["stderr"], "level": "INFO"}},
}
