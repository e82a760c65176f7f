"""Settings of a site with the core, alerts and this app."""

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as ALL

BESIDE = ("alerts", "http")
INSTALLED_APPS = [
    *(
        app
        for app in ALL
        if not app.startswith("django_tenantqueue.contrib.") or app.rpartition(".")[2] in BESIDE
    ),
    "tests.deliveries",
]
ROOT_URLCONF = "tests.alone.urls"
TASKS: dict[str, object] = {}
