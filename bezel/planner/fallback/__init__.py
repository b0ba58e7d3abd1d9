"""Fallback of leased machines: the Cloud Run service that serves while no lease does."""
