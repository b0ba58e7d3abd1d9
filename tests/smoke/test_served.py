"""What serves against what was declared: each field that differs is named, and nothing that is the same."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.diagnosis.served import differences

# As the engine hands a declaration on, with every number a float, ...
DECLARED: dict[str, Any] = {
    "ingress": "INGRESS_TRAFFIC_ALL",
    "labels": {"stack": "one"},
    "template": {
        "serviceAccount": "runtime@acme.iam.gserviceaccount.com",
        "scaling": {"minInstanceCount": 0.0, "maxInstanceCount": 2.0},
        "maxInstanceRequestConcurrency": 8.0,
        "timeout": "3600s",
        "containers": [
            {
                "name": "vllm",
                "image": "us-docker.pkg.dev/acme/hub/vllm@sha256:1",
                "args": ["/mnt/models/gemma", "--max-num-seqs=8"],
                "envs": [
                    {"name": "LEVEL", "value": "INFO"},
                    {"name": "HF_TOKEN", "valueSource": {"secretKeyRef": {"secret": "hf", "version": "latest"}}},
                ],
                "ports": {"name": "http1", "containerPort": 8080.0},
                "resources": {"limits": {"cpu": "4", "memory": "16Gi"}, "cpuIdle": False},
                "startupProbe": {"httpGet": {"path": "/health", "port": 8080.0}, "failureThreshold": 5.0},
                "volumeMounts": [{"name": "weights", "mountPath": "/mnt/models"}],
            }
        ],
        "volumes": [{"name": "weights", "gcs": {"bucket": "acme", "readOnly": True, "mountOptions": ["uid=1001"]}}],
        "vpcAccess": {"networkInterfaces": [{"network": "net", "subnetwork": "sub", "tags": []}]},
    },
    "traffics": [{"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100.0}],
}
# ... and as run v2 describes the service that was made of it: zeros left out, an order of its own, more than was said.
SERVICE: dict[str, Any] = {
    "ingress": "INGRESS_TRAFFIC_ALL",
    "labels": {"stack": "one", "goog-pulumi-provisioned": "true"},
    "uri": "https://llm.example",
    "template": {
        "serviceAccount": "runtime@acme.iam.gserviceaccount.com",
        "scaling": {"maxInstanceCount": 2},
        "maxInstanceRequestConcurrency": 8,
        "timeout": "3600s",
        "containers": [
            {
                "name": "vllm",
                "image": "us-docker.pkg.dev/acme/hub/vllm@sha256:1",
                "args": ["/mnt/models/gemma", "--max-num-seqs=8"],
                "env": [
                    {
                        "name": "HF_TOKEN",
                        "valueSource": {"secretKeyRef": {"secret": "projects/1/secrets/hf", "version": "latest"}},
                    },
                    {"name": "LEVEL", "value": "INFO"},
                ],
                "ports": [{"name": "http1", "containerPort": 8080}],
                "resources": {"limits": {"cpu": "4000m", "memory": "16384Mi", "ephemeral-storage": "1Gi"}},
                "startupProbe": {
                    "httpGet": {"path": "/health", "port": 8080},
                    "failureThreshold": 5,
                    "timeoutSeconds": 1,
                },
                "volumeMounts": [{"name": "weights", "mountPath": "/mnt/models"}],
            }
        ],
        "volumes": [{"name": "weights", "gcs": {"bucket": "acme", "readOnly": True, "mountOptions": ["uid=1001"]}}],
        "vpcAccess": {
            "networkInterfaces": [{"network": "projects/acme/global/networks/net", "subnetwork": "regions/x/sub"}]
        },
    },
    "traffic": [{"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100}],
}
CONTAINER = ("template", "containers", 0)


def serving(*path: str | int, value: Any) -> dict[str, Any]:
    """The service with one value of its description changed; None takes it away."""
    changed = copy.deepcopy(SERVICE)
    place: Any = changed
    for step in path[:-1]:
        place = place[step]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return changed


def test_what_the_platform_made_of_a_declaration_does_not_differ_from_it() -> None:
    assert differences(DECLARED, SERVICE) == []


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ((*CONTAINER, "image"), "vllm@sha256:2", "image: vllm@sha256:2 serves, us-docker.pkg.dev/acme/hub/vllm@"),
        ((*CONTAINER, "args", 1), "--max-num-seqs=4", "args: --max-num-seqs=4 serves, --max-num-seqs=8 is planned"),
        ((*CONTAINER, "args"), ["--max-num-seqs=8", "/mnt/models/gemma"], "args: in another order than planned"),
        ((*CONTAINER, "args"), None, "args: nothing serves, /mnt/models/gemma --max-num-seqs=8 is planned"),
        ((*CONTAINER, "env", 1, "value"), "DEBUG", "env[LEVEL]: has another value than planned"),
        ((*CONTAINER, "env", 1), {"name": "X", "value": "1"}, "env[LEVEL]: is missing"),
        ((*CONTAINER, "env", 0, "valueSource"), {}, "env[HF_TOKEN]: has another value than planned"),
        ((*CONTAINER, "resources", "limits", "cpu"), "8", "resources.limits.cpu: 8 serves, 4 is planned"),
        ((*CONTAINER, "ports", 0, "containerPort"), 9090, "ports.containerPort: 9090 serves, 8080 is planned"),
        ((*CONTAINER, "startupProbe", "failureThreshold"), 3, "startupProbe.failureThreshold: 3 serves, 5 is planned"),
        (("template", "scaling", "minInstanceCount"), 1, "scaling.minInstanceCount: 1 serves, 0 is planned"),
        (("template", "maxInstanceRequestConcurrency"), 80, "maxInstanceRequestConcurrency: 80 serves, 8 is planned"),
        (("template", "volumes", 0, "gcs", "bucket"), "b", "volumes[weights].gcs.bucket: b serves, acme is planned"),
        (("template", "volumes"), None, "volumes[weights]: is missing"),
        (("template", "containers"), [], "containers[vllm]: is missing"),
        (("traffic", 0, "percent"), 50, "traffic[0].percent: 50 serves, 100 is planned"),
        (("traffic",), [*SERVICE["traffic"], {"tag": "t"}], "traffic[1]: is not planned"),
        (("ingress",), "INGRESS_TRAFFIC_INTERNAL_ONLY", "ingress: INGRESS_TRAFFIC_INTERNAL_ONLY serves, INGRESS"),
        (("labels", "stack"), "two", "labels.stack: two serves, one is planned"),
        (("template",), None, "serviceAccount: nothing serves, runtime@"),
    ],
)
def test_what_differs_is_named_with_both_values(path: tuple[str | int, ...], value: Any, text: str) -> None:
    named_differences = differences(DECLARED, serving(*path, value=value))
    assert any(text in line for line in named_differences), named_differences


@pytest.mark.slow
@given(st.text(min_size=4, alphabet=st.characters(min_codepoint=33, max_codepoint=126)))
def test_no_secret_value_of_a_variable_or_argument_is_shown(planted: str) -> None:
    """No value of a variable is shown and no argument that is called a secret."""
    planted = f"planted{planted}"
    declared = copy.deepcopy(DECLARED)
    declared["template"]["containers"][0]["envs"][0]["value"] = planted
    declared["template"]["containers"][0]["args"].append(f"--api-key={planted}")
    service = serving(*CONTAINER, "env", 0, value={"name": "HF_TOKEN", "value": planted})
    service["template"]["containers"][0]["args"].append(f"--hf-token={planted}1")
    named_differences = differences(declared, service)
    assert len(named_differences) == 3
    assert planted not in str(named_differences)


def test_secret_as_a_word_is_hidden_and_a_count_of_tokens_is_shown() -> None:
    """Secret as word of its own is hidden and a count of tokens is shown."""
    service = copy.deepcopy(SERVICE)
    service["template"]["containers"][0]["args"] += ["--api-key", "planted1", "--max-num-batched-tokens=4096"]
    (line,) = differences(DECLARED, service)
    assert (
        line == "containers[vllm].args: --api-key [redacted] --max-num-batched-tokens=4096 serves, nothing is planned"
    )


@pytest.mark.slow
@given(st.data())
def test_a_declaration_differs_in_exactly_what_is_changed_in_it(data: st.DataObject) -> None:
    places = list(leaves(DECLARED, ()))
    path = data.draw(st.sampled_from(places))
    declared = copy.deepcopy(DECLARED)
    place: Any = declared
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = "something else"
    assert len(differences(declared, SERVICE)) in (1, 2)  # a variable under another name is missing, and there is one


def leaves(value: Any, path: tuple[Any, ...]) -> Any:
    """The paths of every single value."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*path, key))
    else:
        yield path
