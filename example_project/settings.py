"""Settings of the example project.

DATABASE_URL names the database. Without it, it is the embedded server that `make demo` starts.
"""

from pathlib import Path

import environ
from django.core.exceptions import ImproperlyConfigured

from example_project.postgres import DEFAULT_DATA_DIR, Cluster, PostgresError

env = environ.Env()
BASE_DIR = Path(__file__).resolve().parent


def embedded_url() -> str:
    """Return the URL of the embedded server, which must have been started before."""
    try:
        return Cluster(DEFAULT_DATA_DIR).url
    except PostgresError as error:
        raise ImproperlyConfigured(
            f"{error} Run `make demo`, or `python -m example_project.postgres start`, "
            "or set DATABASE_URL."
        ) from error


# Enough for a site that only this machine can reach; set SECRET_KEY for any other.
SECRET_KEY = env.str("SECRET_KEY", default="the example project keeps no secrets")
DEBUG = env.bool("DEBUG", default=False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])

database = env.db_url_config(env.str("DATABASE_URL", default="") or embedded_url())
database["CONN_MAX_AGE"] = 600
database["CONN_HEALTH_CHECKS"] = True
# Reports record their start and end over "records", outside of their own transaction.
DATABASES = {
    "default": database,
    "records": {**database, "TEST": {"MIRROR": "default"}},
}

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
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
    "example_project.flights",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "example_project.flights.tenants.AirlineMiddleware",
]
ROOT_URLCONF = "example_project.urls"
WSGI_APPLICATION = "example_project.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_THOUSAND_SEPARATOR = True
STATIC_URL = "static/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
}

TENANTQUEUE = {
    # The tenant of jobs that a request enqueues: the airline of the page.
    "TENANT_RESOLVER": "example_project.flights.tenants.current_airline",
    "DEFAULT_TENANT_SLOTS": 1,
    "DEFAULT_MAX_ATTEMPTS": 3,
    "BACKOFF_BASE": 1.0,
    "API": {"TASKS": ["example_project.flights.tasks.*"]},
    "STATUS_ERROR": "{message}",  # its messages are written for users
}
