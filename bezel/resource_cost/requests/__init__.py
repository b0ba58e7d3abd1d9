"""Requests to Google's APIs that a resource sends later: which of them only read, and what others buy."""
