"""Checks of what a deploy needs: tools, login, project, APIs, quotas, regions, weights, stack files."""
