from pulumi_offline_support.fixtures import gcp, google

__all__ = ["gcp", "google"]
