"""Access control: identities, tokens, IAM policies and their conditions."""
