"""A Django project of its own: users' code that misbehaves, beside innocent jobs of others."""
