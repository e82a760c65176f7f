"""Django settings of the peer; the database's name comes from $BENCH_DJ_DB."""

import os

import common

SECRET_KEY = "bench"
USE_TZ = True
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ.get("BENCH_DJ_DB", "postgres"),
        "USER": common.PGUSER,
        "HOST": common.PGHOST,
        "PORT": common.PGPORT,
    }
}
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django_tenantqueue",
    "tenantqueue_app",
]
TENANTQUEUE = {"DEFAULT_TENANT_SLOTS": 100_000}
