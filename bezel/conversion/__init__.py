"""Conversion: what serves today, as other people wrote it down, becomes the settings of a stack file.

Owns the readers of command lines, compose files and Cloud Run's services, and what they have in common
(`FoundServer`). What has no counterpart is named; a credential is never written. Pure, but for `sources`. Leaves the
project's folder to the operation that writes the file.
"""
