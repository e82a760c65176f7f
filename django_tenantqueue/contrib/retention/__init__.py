"""Retention: rules of what is kept of which jobs."""
