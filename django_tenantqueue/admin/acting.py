"""In whose name a request of the admin changes something."""

from __future__ import annotations

from contextlib import AbstractContextManager

from django.http import HttpRequest

from ..models import Change
from ..operations.actor import acting_as


def acting(request: HttpRequest) -> AbstractContextManager[None]:
    """Make the changes inside the block in the name of the user of a request."""
    return acting_as(request.user.get_username(), Change.Source.ADMIN)
