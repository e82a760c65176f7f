"""Settings of a site with an admin theme: its name is ADMIN_THEME, "plain" for none."""

import os

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as OURS

THEMES: dict[str, list[str]] = {
    "plain": [],
    "unfold": ["unfold", "unfold.contrib.filters"],
    "jazzmin": ["jazzmin"],
    "grappelli": ["grappelli"],
    "admin_interface": ["admin_interface", "colorfield"],
}
THEME = os.environ.get("ADMIN_THEME", "plain")
INSTALLED_APPS = [*THEMES[THEME], *OURS]
X_FRAME_OPTIONS = "SAMEORIGIN"
ROOT_URLCONF = "tests.themes.urls"
