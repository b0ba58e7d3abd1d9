"""IAM v1, IAM Credentials v1 and the OAuth token endpoint."""
