"""The code of a site before a deployment: an app of the workers that still have it."""
