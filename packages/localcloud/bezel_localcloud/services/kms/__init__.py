"""Cloud KMS: key rings, symmetric keys, their versions, and encryption with them."""
