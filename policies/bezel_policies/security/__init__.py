"""Policy pack `security`: callers, service accounts, plain secrets, external addresses, ownership labels."""
