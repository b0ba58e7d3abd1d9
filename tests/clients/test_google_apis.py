"""Google's client libraries, unmodified but for their endpoint, against localcloud: REST, tokens, logs."""

import sys

import pytest

from bezel_localcloud.core.paths import PROJECT
from localcloud_support.client import REGION, RUNTIME, until
from tests.support.clients import environment, programs
from tests.support.record_results import check_results
from tools.traffic import enum_numbers

pytestmark = [pytest.mark.slow, pytest.mark.clients]
COMPUTE = f"/compute/v1/projects/{PROJECT}"
JOBS = f"/run/v2/projects/{PROJECT}/locations/{REGION}/jobs"
METADATA = ("GCE_METADATA_HOST", "GCE_METADATA_IP")  # a container's variables
# Calls that localcloud refuses as not served, by program.
NOT_SERVED = {
    "google_secrets": {"list_locations"},
    "google_kms": {"create_crypto_key to sign", "generate_random_bytes"},
    "google_run": {"delete_revision"},
    "google_compute": {
        "machineTypes.get without accelerators",
        "instances.insert without accelerators",
        "instances.stop",
    },
    "google_projects": {
        *("list_projects", "update_project", "list_locations"),
        *("get_accelerator_type", "stop_node"),
    },
    "google_balancers": {"urlMaps.invalidateCache"},
    "google_certificates": {"create_certificate that the caller brings", "list_trust_configs"},
    "google_dns": set(),
    "google_billing": {"update_project_billing_info"},
    "google_auth": {"sign_blob", "sign_jwt", "list_sinks"},
    "google_discovery": {"monitoring: notificationChannels.verify"},
    "google_metadata": set(),
    "google_node": {"listWorkerPools"},
    "google_go": set(),
}
ABOUT = (
    "Google's client libraries for Python, Node and Go, of the versions below, with the key file and the addresses of "
    "`bezel local env`: each method that localcloud serves, long-running operations, paging, masks, IAM policies, and "
    'errors with their details. Set are the endpoint (`client_options.api_endpoint`), and `transport="rest"` '
    'or `fallback: "rest"` where a client has gRPC too.'
)
NOTES = [
    {
        "what": "google-cloud-compute, `operation.result()`",
        "why": "the library's: it polls at compute.googleapis.com, whatever endpoint the client has",
        "evidence": "`insert_unary(...)` with a wait by an operations client of one's own works",
    },
    {
        "what": "google-auth, `impersonated_credentials.IDTokenCredentials`",
        "why": "the library's: it calls iamcredentials.googleapis.com at a fixed address",
        "evidence": "`IAMCredentialsClient.generate_id_token` works",
    },
    {
        "what": "google-cloud-monitoring, google-cloud-iam (admin), google-cloud-tpu of v2alpha1",
        "why": "they speak gRPC only, which localcloud does not",
        "evidence": "google-api-python-client calls these APIs over HTTP",
    },
]


@pytest.fixture(scope="module")
def prepared_variables(cloud, variables):
    """The variables of the programs, with everything that they need in place."""
    cloud.enable("tpu", "cloudquotas", "cloudkms", "cloudbilling", "billingbudgets", "certificatemanager", "dns")
    for path, body in (
        ("global/networks", {"name": "tpus", "autoCreateSubnetworks": False}),
        (
            "regions/us-east5/subnetworks",
            {"name": "tpus", "network": "global/networks/tpus", "ipCidrRange": "10.9.0.0/24"},
        ),
    ):
        operation = cloud.post(f"{COMPUTE}/{path}", body).json()
        until(lambda: cloud.get(operation["selfLink"]).json()["status"] == "DONE")  # noqa: B023
    container = {"image": cloud.template()["containers"][0]["image"], "args": ["--tell=GCE_METADATA_HOST", "--silent"]}
    task = {"containers": [container], "serviceAccount": RUNTIME}
    cloud.finish("run/v2", cloud.post(JOBS, {"template": {"template": task}}, jobId="told"))
    cloud.post(f"{JOBS}/told:run")
    messages = until(
        lambda: [entry["textPayload"] for entry in cloud_log(cloud) if "METADATA_HOST=" in entry["textPayload"]]
    )
    # No program may leave this machine: google-auth looks up regional boundaries at Google in the background.
    outside = {"HTTPS_PROXY": "http://127.0.0.1:1"}
    metadata = dict.fromkeys(METADATA, messages[0].partition("=")[2])
    return variables | outside | metadata | {"TRIED_IMAGE": container["image"]}


def cloud_log(cloud):
    terms = 'resource.type="cloud_run_job" AND textPayload:"METADATA"'
    body = {"resourceNames": [f"projects/{PROJECT}"], "filter": terms}
    return cloud.post("/logging/v2/entries:list", body).json().get("entries", [])


@pytest.mark.wide_except("google_secrets")
@pytest.mark.parametrize("name", sorted(NOT_SERVED))
def test_every_call_of_an_unmodified_client_passes_or_is_refused_by_name(prepared_variables, calls, name):
    interpreter = sys.executable if name == "google_discovery" else environment.python("google")
    absent = {"GOOGLE_APPLICATION_CREDENTIALS"} if name == "google_metadata" else METADATA
    variables = {key: value for key, value in prepared_variables.items() if key not in absent}
    command = [interpreter, programs.PROGRAMS / f"{name}.py"]
    if name == "google_go":
        command = [environment.go_tool(name)]
    if name == "google_node":
        variables["NODE_PATH"] = str(environment.npm("google") / "node_modules")
        command = ["node", programs.PROGRAMS / "google_node.cjs"]
    made = programs.run(command, variables)
    programs.assert_served(made, not_served=NOT_SERVED[name])
    calls[name] = made


def test_the_shipped_numbers_of_enum_values_are_the_published_ones():
    published = enum_numbers.to_text(enum_numbers.enum_numbers(str(environment.python("google"))))
    shipped = (enum_numbers.DATA / "enums.json").read_text()
    assert shipped == published, "run: .venv/bin/python -m tools.traffic.enum_numbers"


@pytest.fixture(scope="module")
def calls():
    """The calls of the programs that passed; when all have, their table is compared or written."""
    made = {}
    yield made
    if made.keys() == NOT_SERVED.keys():
        ordered = [call for name in sorted(made) for call in made[name]]
        where = "tests/clients/test_google_apis.py"
        table = programs.table("Google's client libraries", 24, ABOUT, where, ordered)
        check_results("clients-google", table | {"notes": table["notes"] + NOTES, "checked": "make clients"})
