"""Encryption of objects with keys that localcloud does not choose: those of customers, and those of Cloud KMS."""
