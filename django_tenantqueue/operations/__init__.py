"""Every change of state: enqueue, run, finish, control, maintain."""
