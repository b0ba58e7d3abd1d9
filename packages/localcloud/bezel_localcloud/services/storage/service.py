"""All of Cloud Storage's JSON API: the modules whose import registers its methods."""

from bezel_localcloud.services.storage import copies, folders, objects, sessions, uploads
from bezel_localcloud.services.storage.api import api
from bezel_localcloud.services.storage.buckets import api as buckets
from bezel_localcloud.services.storage.buckets import policies, soft_delete

__all__ = ["MODULES", "api"]
MODULES = (buckets, copies, folders, objects, policies, sessions, soft_delete, uploads)
