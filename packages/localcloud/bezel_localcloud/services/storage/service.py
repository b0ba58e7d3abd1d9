"""All of Cloud Storage's JSON API: the modules whose import registers its methods."""

from bezel_localcloud.services.storage import copies, folders
from bezel_localcloud.services.storage.api import api
from bezel_localcloud.services.storage.buckets import api as buckets
from bezel_localcloud.services.storage.buckets import policies, soft_delete
from bezel_localcloud.services.storage.objects import methods as objects
from bezel_localcloud.services.storage.uploads import sessions
from bezel_localcloud.services.storage.uploads import single_request as uploads

__all__ = ["MODULES", "api"]
MODULES = (buckets, copies, folders, objects, policies, sessions, soft_delete, uploads)
