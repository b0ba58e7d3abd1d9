"""Access control: identities, tokens, IAM policies, and who may reach a port."""
