"""Open every admin page of the package on a site with a theme; print those that fail, as JSON.

It is a program, since a theme is an app before django.contrib.admin: one process has one theme.
"""

from __future__ import annotations

import json
import sys

import django

if __name__ == "__main__":
    django.setup()

from django.contrib.auth.models import Permission, User
from django.core.management import call_command

from django_tenantqueue.contrib.retention.control import make_retention_rule
from django_tenantqueue.contrib.schedules.control import make_schedule
from django_tenantqueue.testing import run_commit_hooks
from tests.browser.test_accessibility import fill
from tests.testapp.tasks import noop
from tests.walk import Walk, listed


def fill_rest() -> None:
    """Make the rows that the other pages need."""
    make_schedule("nightly", noop.name, "0 3 * * *")
    make_retention_rule(task=noop.name, keep_days=3)


def main() -> None:
    """Migrate an empty database, and walk over the pages without rows and with rows."""
    call_command("migrate", verbosity=0)
    walks = [Walk(User.objects.create_superuser("admin"))]
    walks[0].walk()
    fill()
    fill_rest()
    # before the walk, which ends mutes
    empty = [model.__name__ for model in listed() if not model._default_manager.exists()]
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.set(
        Permission.objects.filter(
            content_type__app_label__startswith="tenantqueue", codename__startswith="view_"
        )
    )
    walks += [Walk(viewer), Walk(User.objects.create_superuser("other"))]
    walks[1].walk()
    walks[2].walk(asks=True)
    run_commit_hooks("default")
    json.dump(
        {
            "opened": [walk.seen for walk in walks],
            "without_rows": empty,
            "failed": [failure for walk in walks for failure in walk.failed],
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
