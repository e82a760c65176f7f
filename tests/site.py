"""The models of the package, those of its optional apps among them, by their names in addresses."""

from __future__ import annotations

from django.apps import apps
from django.db.models import Model


def models_of_ours() -> list[type[Model]]:
    return [m for m in apps.get_models() if m._meta.app_label.startswith("tenantqueue")]


def model_of(name: str) -> type[Model]:
    """Return the model of that name in lower case; raise LookupError."""
    for model in models_of_ours():
        if model._meta.model_name == name:
            return model
    raise LookupError(name)


def label_of(name: str) -> str:
    return model_of(name)._meta.app_label


def admin_path(name: str) -> str:
    return f"/admin/{label_of(name)}/{name}/"
