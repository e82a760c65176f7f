"""The worker: a supervisor process and the children that claim and run jobs."""
