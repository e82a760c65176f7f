"""Settings of a site with some of the optional apps: their names are in OPTIONAL_APPS."""

import os

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as ALL

OPTIONAL = os.environ.get("OPTIONAL_APPS", "").split()
INSTALLED_APPS = [
    app
    for app in ALL
    if not app.startswith("django_tenantqueue.contrib.") or app.rpartition(".")[2] in OPTIONAL
]
ROOT_URLCONF = "tests.alone.urls"
TASKS: dict[str, object] = {}
