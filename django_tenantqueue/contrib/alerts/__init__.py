"""Alerts: rules that send messages when something is wrong for a while."""
