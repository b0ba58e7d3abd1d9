"""Calls of Cloud Quotas, for `ApiHarness`."""

from localcloud_support.client import PARENT

GLOBAL = f"/cloudquotas/v1/{PARENT}/locations/global"
CPU = {"service": "run.googleapis.com", "quotaId": "CpuAllocPerProjectRegion", "dimensions": {"region": "us-east1"}}


def quotas(trial):
    """Every method once."""
    trial.owner.enable("cloudquotas")
    infos = f"{GLOBAL}/services/run.googleapis.com/quotaInfos"
    trial("GET", infos, pageSize=1)
    trial("GET", f"{infos}/CpuAllocPerProjectRegion", missing=f"{infos}/None")
    path = f"{GLOBAL}/quotaPreferences"
    body = CPU | {"quotaConfig": {"preferredValue": "300000"}, "contactEmail": "a@example.com"}
    trial("POST", path, body, quotaPreferenceId="tried")
    trial.refuse(409, "POST", path, body, says="already")
    trial.refuse(400, "POST", path, CPU, says="quotaConfig is required")
    one, none = f"{path}/tried", f"{path}/absent"
    trial("GET", one, missing=none)
    trial("GET", path, pageSize=1)
    trial.refuse(400, "GET", path, filter="reconciling=true", says="query parameter 'filter'")
    more = {"quotaConfig": {"preferredValue": "350000"}}
    trial("PATCH", one, more, updateMask="quotaConfig.preferredValue", validateOnly="true", missing=none)
    trial.refuse(409, "PATCH", one, more | {"etag": "old"}, says="etag")
    trial.refuse(400, "PATCH", one, more | {"quotaId": "None"}, says="cannot be changed")
