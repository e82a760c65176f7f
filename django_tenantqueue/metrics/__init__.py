"""Metrics for Prometheus. They need the extra `prometheus`."""
