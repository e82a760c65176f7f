"""Names of tasks that are known here."""

from __future__ import annotations

from django.apps import apps

from ..calls.sources import known_names
from ..models import Job, TaskControl


def is_known(using: str, name: str) -> bool:
    """Whether a task, a model's method, a control or an ended job has that name."""
    if name in known_names() or TaskControl.objects.using(using).filter(task=name).exists():
        return True
    label, _, method = name.rpartition(".")
    if label.count(".") == 1 and label in {model._meta.label for model in apps.get_models()}:
        return hasattr(apps.get_model(label), method)
    return Job.objects.using(using).finished().filter(task=name).exists()
