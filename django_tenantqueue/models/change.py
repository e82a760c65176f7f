"""Changes that operators and code have made, with who made them."""

from __future__ import annotations

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from ..features import Feature, hooks
from .fields import NumberListField
from .job import Job
from .monitor import ConcurrentJobMonitor
from .mute import Mute
from .queue import TenantQueue
from .session import Session, UserLimit
from .task_control import TaskControl
from .worker import Worker


class Change(models.Model):
    """One call that changed something, written in the transaction of the change.

    A call that changes many objects leaves one row. `object_ids` has the first of them.
    """

    class Kind(models.TextChoices):
        """What was changed, of the core. Features have kinds of their own: see features.py."""

        QUEUE = "queue", _("tenant queue")
        SESSION = "session", _("session")
        USER_LIMIT = "user_limit", _("user limit")
        TASK = "task", _("task control")
        MONITOR = "monitor", _("monitor")
        WORKER = "worker", _("worker")
        JOB = "job", _("job")
        MUTE = "mute", _("muted problem")

    class Source(models.TextChoices):
        """Where it was changed from."""

        ADMIN = "admin", _("admin")
        COMMAND = "command", _("command")
        API = "api", _("API")
        CODE = "code", _("code")
        WORKER = "worker", _("worker")

    class Action(models.TextChoices):
        """What was done."""

        ADD = "add", _("added")
        TUNE = "tune", _("tuned")
        PAUSE = "pause", _("paused")
        RESUME = "resume", _("resumed")
        HALT = "halt", _("halted")
        RETIRE = "retire", _("retired")
        REOPEN = "reopen", _("reopened")
        DELETE = "delete", _("deleted")
        DRAIN = "drain", _("asked to drain")
        STOP = "stop", _("asked to stop")
        CANCEL = "cancel", _("cancelled")
        RETRY = "retry", _("retried")
        ENQUEUE_AGAIN = "enqueue_again", _("enqueued again")
        RUN_NOW = "run_now", _("made due now")
        SET_PRIORITY = "set_priority", _("priority changed")
        SET_RUN_AT = "set_run_at", _("time changed")
        MOVE = "move", _("moved")
        ENABLE = "enable", _("enabled")
        DISABLE = "disable", _("disabled")
        RELANE = "relane", _("PRIORITY_SCOPE applied")
        REVOKE = "revoke", _("revoked")
        ERASE = "erase", _("tenant erased")
        DIE = "die", _("died")
        MUTE = "mute", _("muted")
        UNMUTE = "unmute", _("unmuted")

    id = models.BigAutoField(primary_key=True)
    made_at = models.DateTimeField(_("when"), db_default=Now(), editable=False)
    actor = models.TextField(_("who"), blank=True, default="", db_default="")
    source = models.TextField(_("from"), choices=Source.choices)
    action = models.TextField(_("action"), choices=Action.choices)
    object_kind = models.TextField(_("kind"))
    object_ids = NumberListField(_("ids"), default=list)
    object_count = models.BigIntegerField(_("objects"), default=1)
    object_label = models.TextField(_("object"), blank=True, default="", db_default="")
    tenant = models.TextField(_("tenant"), blank=True, default="", db_default="")
    before = models.JSONField(_("before"), default=dict, encoder=DjangoJSONEncoder)
    after = models.JSONField(_("after"), default=dict, encoder=DjangoJSONEncoder)

    class Meta:
        verbose_name = _("change")
        verbose_name_plural = _("changes")
        ordering = ("-id",)
        default_permissions = ("view",)
        # A GIN index of object_ids, tenantqueue_change_ids, is made by the migration: Django's
        # class would ask every project to install django.contrib.postgres.
        indexes = (
            models.Index(fields=("actor", "id"), name="tenantqueue_change_actor"),
            models.Index(fields=("source", "id"), name="tenantqueue_change_source"),
            models.Index(fields=("action", "id"), name="tenantqueue_change_action"),
            models.Index(fields=("object_kind", "id"), name="tenantqueue_change_kind"),
            models.Index(
                fields=("object_label", "object_kind", "id"), name="tenantqueue_change_label"
            ),
            models.Index(fields=("tenant", "id"), name="tenantqueue_change_tenant"),
        )
        constraints = (
            models.CheckConstraint(
                condition=Q(object_count__gte=1), name="tenantqueue_change_object_count"
            ),
        )

    def __str__(self) -> str:
        return f"#{self.pk}"


MODELS: dict[str, type[models.Model]] = {
    Change.Kind.QUEUE: TenantQueue,
    Change.Kind.SESSION: Session,
    Change.Kind.USER_LIMIT: UserLimit,
    Change.Kind.TASK: TaskControl,
    Change.Kind.MONITOR: ConcurrentJobMonitor,
    Change.Kind.WORKER: Worker,
    Change.Kind.JOB: Job,
    Change.Kind.MUTE: Mute,
}
"""The model of each kind of object of the core."""


def models_by_kind() -> dict[str, type[models.Model]]:
    """Return the model of each kind of object, also of those that features record."""
    found = dict(MODELS)
    for hook in hooks(Feature.audited):
        found |= hook()
    return found


def kind_text(kind: str) -> str:
    """Return the name of a kind of object; of an app that is not installed, the kind itself."""
    model = models_by_kind().get(kind)
    return kind if model is None else str(model._meta.verbose_name)


def kind_of(row: models.Model) -> str | None:
    """Return the `Change.object_kind` of a row; None when it has no entries."""
    if isinstance(row, Session):
        is_limit = row.kind == Session.Kind.LIMIT_USER
        return Change.Kind.USER_LIMIT if is_limit else Change.Kind.SESSION
    found = (kind for kind, model in models_by_kind().items() if isinstance(row, model))
    return next(found, None)
