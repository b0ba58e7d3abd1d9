"""Explanations of names in a stack file: from the catalogue, the recorded options, the settings and the policies."""
