"""Retention: rules that say how long jobs are kept."""
