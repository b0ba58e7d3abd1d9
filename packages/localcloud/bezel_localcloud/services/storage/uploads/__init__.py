"""Uploads: in one request, in sessions or by command headers, and the write that all of them end with."""
