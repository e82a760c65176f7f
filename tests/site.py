"""The models of the package, those of its optional apps among them, by their names in addresses."""

from __future__ import annotations

from django.apps import apps
from django.db.models import Model


def models_of_ours() -> list[type[Model]]:
    """Return all models of the package."""
    return [m for m in apps.get_models() if m._meta.app_label.startswith("tenantqueue")]


def model_of(name: str) -> type[Model]:
    """Return the model of that name in lower case; raise LookupError."""
    for model in models_of_ours():
        if model._meta.model_name == name:
            return model
    raise LookupError(name)


def label_of(name: str) -> str:
    """Return the label of the app of a model."""
    return model_of(name)._meta.app_label


def admin_path(name: str) -> str:
    """Return the address of the list of a model."""
    return f"/admin/{label_of(name)}/{name}/"
