"""All of Cloud Storage's JSON API: the modules whose import registers its methods."""

from bezel.localcloud.services.storage import batch, buckets, copies, objects, sessions, uploads
from bezel.localcloud.services.storage.api import api

__all__ = ["MODULES", "api"]
MODULES = (batch, buckets, copies, objects, sessions, uploads)
