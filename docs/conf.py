"""Sphinx configuration: MyST pages, the furo theme, parts made from the code."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

import django
from django.conf import settings

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
from from_code import installed_apps

# Enough of Django to import the package; nothing here connects to a database.
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "none"}},
    INSTALLED_APPS=installed_apps(),
    USE_TZ=True,
)
django.setup()

project = "django_tenantqueue"
author = "django_tenantqueue contributors"
copyright = author  # noqa: A001
release = version = installed_version("django-tenantqueue")

extensions = ["myst_parser", "from_code", "narrow_pages"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = f"django_tenantqueue {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3
# A copied "--option" or "quoted" text must work.
smartquotes = False
add_module_names = False
nitpicky = True
