"""Credentials: keys, credential files, and tokens of localcloud's own issuer and of outside ones."""
