"""Vertex AI v1: models of the Model Registry, uploaded, listed, read and deleted, one version each.

Shapes are those of the discovery document. Leaves out deployments, further versions, evaluations and exports, and the
content at a model's artifact URI, which nothing here reads.
"""

import random
import re

from bezel_localcloud.core.errors import ApiError, invalid, unserved_error
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.core.operations import EMPTY
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel_localcloud.core.regions import regions
from bezel_localcloud.http.messages import settable_fields
from bezel_localcloud.routing.operations_api import serve_operations
from bezel_localcloud.routing.router import Api, Call

api = Api("aiplatform.googleapis.com", "Vertex AI API", locations=regions())
_LOCATION = "/aiplatform/v1/projects/{project:id}/locations/{location:id}"
_ONE = _LOCATION + "/models/{model:id}"
_PARENT = "projects/{project}/locations/{location}"
_NAME = _PARENT + "/models/{model}"
KIND = "vertexModel"
_SETTABLE = settable_fields("aiplatform.GoogleCloudAiplatformV1Model")
_TYPES = "type.googleapis.com/google.cloud.aiplatform.v1."
_ID = re.compile(r"[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?")
_UPLOAD_SECONDS, _DELETE_SECONDS = 20.0, 5.0  # of the platform's time
_LONGEST_NAME = 128


@api.route("POST", _LOCATION + "/models:upload", needs="aiplatform.models.upload")
def upload(call: Call) -> Json:
    """Register a model; Google chooses its id if the caller names none."""
    model, model_id = call.body.get("model") or {}, call.body.get("modelId", "")
    if call.body.get("parentModel"):
        raise unserved_error("a further version of a model (parentModel)", "upload another model")
    if not 0 < len(model.get("displayName", "")) <= _LONGEST_NAME:
        raise invalid("Model display name must have 1 to 128 characters.", ("model.display_name", "is required"))
    if model_id and not _ID.fullmatch(model_id):
        raise invalid(f"Invalid model id {model_id!r}.", ("model_id", model_id))
    name = f"{call.name(_PARENT)}/models/{model_id or random.getrandbits(62)}"
    cloud, now = call.cloud, timestamp(call.cloud.pace.now())
    kept = {key: value for key, value in model.items() if key in _SETTABLE and value not in ("", {}, [])}
    times = dict.fromkeys(("createTime", "updateTime", "versionCreateTime", "versionUpdateTime"), now)
    with cloud.store.transaction():
        call.check_absent(KIND, name, f"Model {name} already exists.")
        row = {"name": _with_number(name), "versionId": "1", "versionAliases": ["default"], **kept, **times}
        cloud.store.put(KIND, name, row | {"etag": f"{cloud.store.next_number('vertex-etag'):013x}"})
        answer = {"@type": f"{_TYPES}UploadModelResponse", "model": _with_number(name), "modelVersionId": "1"}
        return cloud.operations.begin_timed(call.name(_PARENT), _metadata("UploadModel", now), answer, _UPLOAD_SECONDS)


@api.route("GET", _LOCATION + "/models", needs="aiplatform.models.list", query="pageSize pageToken")
def list_models(call: Call) -> Json:
    """Models of a location."""
    rows = call.cloud.store.rows(KIND, f"{call.name(_PARENT)}/models/")
    return call.page(rows, "models", default=50, max_size=100)


@api.route("GET", _ONE, needs="aiplatform.models.get")
def get(call: Call) -> Json:
    """One model."""
    return _model(call)[1]


@api.route("DELETE", _ONE, needs="aiplatform.models.delete")
def delete(call: Call) -> Json:
    """Delete a model; what is at its artifact URI stays."""
    with call.cloud.store.transaction():
        call.cloud.store.delete(KIND, _model(call)[0])
        metadata = _metadata("Delete", timestamp(call.cloud.pace.now()))
        return call.cloud.operations.begin_timed(call.name(_PARENT), metadata, EMPTY, _DELETE_SECONDS)


serve_operations(api, _LOCATION, _PARENT, "get")


def _model(call: Call) -> tuple[str, Json]:
    name = call.name(_NAME)
    return name, call.row_of(KIND, name, f"The Model does not exist: {name}")


def _metadata(what: str, now: str) -> Json:
    return {
        "@type": f"{_TYPES}{what}OperationMetadata",
        "genericMetadata": {"createTime": now, "updateTime": now},
    }


def _with_number(name: str) -> str:
    return name.replace(f"projects/{PROJECT}/", f"projects/{PROJECT_NUMBER}/", 1)


def not_found(name: str) -> ApiError:
    """404 for a model of a publisher."""
    return ApiError("NOT_FOUND", f"Publisher Model `{name}` is not found.")
