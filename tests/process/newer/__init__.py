"""The code of a site after a deployment: an app of the workers that have it already."""
