"""A Celery app whose workers run jobs, and the brokers that tests start for it."""
