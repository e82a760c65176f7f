"""Settings of the workers that the tests of shards start. TEST_SHARDS has the URLs by alias."""

import json
import os

from tests.databases import settings_of
from tests.process.settings import *  # noqa: F403
from tests.process.settings import DATABASES, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.contrib.shards"]
URLS = json.loads(os.environ["TEST_SHARDS"])
DATABASES = {**DATABASES, **{alias: settings_of(url) for alias, url in URLS.items()}}
DATABASE_ROUTERS = ["django_tenantqueue.routers.TenantQueueRouter"]
TENANTQUEUE = {"DATABASE": next(iter(URLS)), "SHARDS": {"DATABASES": list(URLS)}}
