"""What people and probes read. Nothing here changes anything."""
