"""Settings of the shop. SHOP_EAGER=1 runs every task at once, without a broker."""

import os
import tempfile
from datetime import timedelta
from pathlib import Path

import environ
from celery.schedules import crontab

SECRET_KEY = "only-for-tests"
USE_TZ = True
TIME_ZONE = "Europe/Berlin"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "shop.urls"
DATABASES = {"default": environ.Env().db_url("DATABASE_URL", default="sqlite://:memory:")}
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "shop"]
DATA_DIR = Path(os.environ.get("SHOP_DATA", f"{tempfile.gettempdir()}/shop"))

CELERY_BROKER_URL = os.environ.get("SHOP_BROKER", "redis://localhost:6379/0")
CELERY_RESULT_BACKEND = os.environ.get("SHOP_RESULTS", "cache+memory://")
CELERY_TASK_ALWAYS_EAGER = os.environ.get("SHOP_EAGER") == "1"
CELERY_TASK_STORE_EAGER_RESULT = True
CELERY_TASK_SOFT_TIME_LIMIT = 600
CELERY_TASK_TIME_LIMIT = 660
CELERY_TIMEZONE = "Europe/Berlin"
CELERY_TASK_ROUTES = {
    "shop.tasks.render_*": {"queue": "reports"},
    "shop.tasks.merge_pages": {"queue": "reports"},
    "shop.tasks.sync_stock": {"queue": "slow"},
}
CELERY_BEAT_SCHEDULE = {
    "clean up every night": {
        "task": "shop.tasks.clean_up",
        "schedule": crontab(hour=3, minute=30),
        "kwargs": {"older_than_days": 30},
    },
    "stock of the north": {
        "task": "shop.tasks.sync_stock",
        "schedule": 300.0,
        "args": ("north",),
        "options": {"expires": 240},
    },
    "stock of the south": {
        "task": "shop.tasks.sync_stock",
        "schedule": timedelta(minutes=10),
        "args": ("south",),
    },
}
