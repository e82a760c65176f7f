"""The project: settings, one model, the innocent tasks and the misbehaving ones."""
