"""Settings of the test suite.

The database is DATABASE_URL. Without it, tests/conftest.py starts an embedded server and fills
in its address; nothing here starts one, since linters load these settings too.

OPTIONAL_APPS names the apps of django_tenantqueue.contrib, separated by spaces. Without it all are
installed.
"""

import environ

from tests.suites import OPTIONAL_APPS, app_path

env = environ.Env()

SECRET_KEY = "only-for-tests"
DEBUG = False
USE_TZ = True
TIME_ZONE = "UTC"
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "testserver"]
ROOT_URLCONF = "tests.urls"
STATIC_URL = "/static/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

NOT_STARTED = "postgres://embedded-server-not-started.invalid/tenantqueue"
DATABASES = {"default": env.db_url("DATABASE_URL", default=NOT_STARTED)}

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django_tenantqueue",
    *(app_path(app) for app in env.str("OPTIONAL_APPS", " ".join(OPTIONAL_APPS)).split()),
    "tests.testapp",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
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
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}

TENANTQUEUE: dict[str, object] = {}
TASKS = {
    "default": {
        "BACKEND": "django_tenantqueue.contrib.django_tasks.TenantQueueBackend",
        "QUEUES": [],
    },
    "limited": {
        "BACKEND": "django_tenantqueue.contrib.django_tasks.TenantQueueBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {"tenant": "office", "max_attempts": 3, "timeout": 60},
    },
}
