"""Settings of a site with some of the optional apps: their names are in OPTIONAL_APPS."""

from tests.settings import *  # noqa: F403

ROOT_URLCONF = "tests.alone.urls"
TASKS: dict[str, object] = {}
