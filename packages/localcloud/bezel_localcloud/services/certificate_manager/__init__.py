"""Certificate Manager: managed certificates, DNS authorizations, certificate maps."""
