"""Settings of workers with the code after a deployment."""

from tests.process.settings import *  # noqa: F403
from tests.process.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.process.newer"]
