"""Google's verdict on a stack before its deploy, beside localcloud's: requests that create nothing, and a report."""

HEADING = "# Google's verdict on a stack before its deploy"
"""First line of the report: a file that begins otherwise is not overwritten."""
