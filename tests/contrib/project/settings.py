"""Settings of the project. PROJECT_BACKEND is the line that the switch changes."""

import json
import os

import environ
from django import VERSION

BACKEND = os.environ.get(
    "PROJECT_BACKEND", "django_tenantqueue.contrib.django_tasks.TenantQueueBackend"
)

SECRET_KEY = "only-for-tests"
USE_TZ = True
DATABASES = {"default": environ.Env().db_url("DATABASE_URL", default="postgres://none.invalid/x")}
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    BACKEND.partition(".")[0],
    "tests.contrib.project.apps.ProjectConfig",
]
if VERSION < (6, 0):
    INSTALLED_APPS.append("django_tasks")
TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": ["default", "mail"]}}
TENANTQUEUE = json.loads(os.environ.get("TEST_TENANTQUEUE", "{}"))
