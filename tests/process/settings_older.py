"""Settings of workers with the code before a deployment."""

from tests.process.settings import *  # noqa: F403
from tests.process.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.process.older"]
