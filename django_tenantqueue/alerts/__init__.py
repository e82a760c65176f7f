"""Alerts: what rules find wrong, and the messages that tell it."""
