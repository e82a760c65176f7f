"""Settings of a site with this app, beside the core and what OPTIONAL_APPS says."""

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as OTHERS

INSTALLED_APPS = [*OTHERS, "tests.deliveries"]
ROOT_URLCONF = "tests.alone.urls"
TASKS: dict[str, object] = {}
TENANTQUEUE = {"VISIBLE_TENANTS": "tests.deliveries.use.visible_tenants"}
