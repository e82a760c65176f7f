"""Operators and the pages that they look at."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission, User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from tests.site import label_of


def url_of(model: str, page: str, *args: object) -> str:
    return reverse(f"admin:{label_of(model)}_{model}_{page}", args=args)


def text_of(response: HttpResponse) -> str:
    """Return the page as text: without tags, spaces folded."""
    content = re.sub(r"(?s)<(script|style|nav|svg).*?</\1>", " ", response.content.decode())
    return " ".join(re.sub(r"<[^>]+>", " ", content).split())


@pytest.fixture
def operator(db: None) -> Callable[..., Client]:
    """Return a function that logs a member of staff in, with the named permissions."""

    def log_in(*codenames: str) -> Client:
        user = User.objects.create_user(
            f"operator-{User.objects.count()}", password="secret", is_staff=True
        )
        ours = Permission.objects.filter(content_type__app_label__startswith="tenantqueue")
        user.user_permissions.set(ours.filter(codename__in=codenames))
        assert user.user_permissions.count() == len(codenames)
        client = Client()
        client.force_login(user)
        return client

    return log_in
