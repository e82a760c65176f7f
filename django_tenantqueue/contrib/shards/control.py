"""The database of a tenant, and pins of tenants to databases."""

from __future__ import annotations

from ...conf import database
from ...coroutines import twin
from .moving import cancel_move, move_tenant
from .routes import shard_of, shard_of_id
from .services import list_pins, pin_tenant, unpin_tenant

ashard_of = twin(shard_of)
alist_pins = twin(list_pins)
acancel_move = twin(cancel_move)
amove_tenant = twin(move_tenant)
apin_tenant = twin(pin_tenant)
aunpin_tenant = twin(unpin_tenant)

__all__ = [
    "acancel_move",
    "alist_pins",
    "amove_tenant",
    "apin_tenant",
    "ashard_of",
    "aunpin_tenant",
    "cancel_move",
    "database",
    "list_pins",
    "move_tenant",
    "pin_tenant",
    "shard_of",
    "shard_of_id",
    "unpin_tenant",
]
