"""A project written for django-tasks-db. Only its backend's line and its worker are ours."""
