"""Every change of state: enqueue, release, control, rescue, maintain."""
