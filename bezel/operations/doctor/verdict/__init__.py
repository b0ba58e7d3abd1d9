"""Google's verdict on a stack before its deploy, beside localcloud's: requests that create nothing, and a report."""
