"""Calls of Vertex AI's model registry and Model Garden, for `ApiHarness`."""

from localcloud_support.client import PARENT, REGION

MODELS = f"/aiplatform/v1/{PARENT}/locations/{REGION}/models"


def vertex_models(trial):
    """Every method once."""
    trial.owner.enable("aiplatform")
    model = {"displayName": "tried", "artifactUri": "gs://models/tried", "labels": {"team": "a"}}
    operation = trial("POST", f"{MODELS}:upload", {"model": model, "modelId": "tried"})["name"]
    trial.refuse(409, "POST", f"{MODELS}:upload", {"model": model, "modelId": "tried"})
    trial.refuse(400, "POST", f"{MODELS}:upload", {"model": {}}, says="display name")
    trial.refuse(400, "POST", f"{MODELS}:upload", {"model": model, "parentModel": "x"}, says="parentModel")
    trial("GET", f"/aiplatform/v1/{operation}", missing=f"{MODELS.removesuffix('models')}operations/absent")
    one, none = f"{MODELS}/tried", f"{MODELS}/absent"
    trial("GET", one, missing=none)
    trial("GET", MODELS, pageSize=1)
    trial.refuse(400, "GET", MODELS, filter="x", says="query parameter 'filter'")
    trial("DELETE", one, missing=none)
    garden = "/aiplatform/v1/publishers/google/models"
    trial("GET", f"{garden}/gemma4@gemma-4-12b-it", missing=f"{garden}/gemma4@gemma-4-13b-it")
