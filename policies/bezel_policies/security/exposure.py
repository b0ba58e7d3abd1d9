"""Rules of exposure: images by digest, no secret in plain text, no external address on an accelerator. Pure."""

import re
from collections.abc import Iterator, Mapping

from bezel.resource_cost.hardware import INSTANCE, SERVICE, TPU_VM, hardware_of
from bezel.resource_cost.inputs import UNKNOWN, InputError, Inputs, not_known
from bezel.resource_cost.prices.leases import Lease
from bezel_base.credentials.headers import is_credential_header
from bezel_base.credentials.names import names_secret
from bezel_base.errors import NOT_SET, NOT_SHOWN, Problem
from bezel_base.text.redaction import is_secret, redact_forms
from bezel_policies.config import PolicyConfig
from bezel_policies.security.access import RUN_JOB, SCHEDULED, WORKER_POOL

_CONTAINERS = {
    SERVICE: ("template", "containers"),
    WORKER_POOL: ("template", "containers"),
    RUN_JOB: ("template", "template", "containers"),
}
_HEADERS = {
    "gcp:monitoring/uptimeCheckConfig:UptimeCheckConfig": ("httpCheck", "headers"),
    SCHEDULED: ("httpTarget", "headers"),
}
NODE_IMAGE = "bezel-image"
"""Metadata attribute of a leased machine that names its container image."""
_NODE_IMAGES = (NODE_IMAGE, "bezel-collector-image")
_REFERENCES = "bezel-secrets-by-name"
"""Metadata of a lease's machine: variables with the names of their secrets in Secret Manager, as JSON."""
_DIGEST = re.compile(r"[^@\s]+@sha256:[0-9a-f]{64}")
# Names of inputs that hold variables as a mapping of names to values, on several types.
_VARIABLES = re.compile(r"\w*(?:environment|env)_?var(?:iable)?s", re.IGNORECASE)
_OPTION = re.compile(r"--?([\w.-]+)=(.+)", re.DOTALL)


def image_by_digest(token: str, inputs: Inputs, _config: PolicyConfig) -> Iterator[Problem]:
    """Containers run images with a digest: a tag can be moved to another image, a digest cannot."""
    images = [(container.key("image"), container.text("image") or "") for container in _containers(token, inputs)]
    images += [(place, image) for place, name, image in _attributes(token, inputs) if name in _NODE_IMAGES]
    for place, image in images:
        if not _DIGEST.fullmatch(image):
            consequence = "a tag can be moved: the image could change without a deploy and without a check."
            repair = "look its digest up (ContainerImage does) and write NAME@sha256:DIGEST."
            yield Problem(place, image or NOT_SET, consequence, repair)


def no_plain_secret(token: str, inputs: Inputs, _config: PolicyConfig) -> Iterator[Problem]:
    """Variables, arguments, metadata and headers, which every viewer can read, contain no secret."""
    for place, name, value in _readable(token, inputs):
        if redact_forms(value) != value if name == _REFERENCES else is_secret(name, value):
            yield Problem(
                place,
                NOT_SHOWN,
                "everyone who may view the resource, its state or its logs can read it, as long as these are stored.",
                "revoke it, store a new value in Secret Manager, and name the secret in `bezel:secrets` (on an "
                "instance: fetch it at boot).",
            )


def _containers(token: str, inputs: Inputs) -> list[Inputs]:
    return inputs.each(*_CONTAINERS[token]) if token in _CONTAINERS else []


def _readable(token: str, inputs: Inputs) -> Iterator[tuple[str, str, str]]:
    """(path, name, value) of each text that is visible with the resource."""
    for place, name, value in _variables(inputs.values, inputs.where):
        # An output that is not known yet is checked when it is: in the `up`, before this resource is created.
        if value is not UNKNOWN:
            yield place, name, _text(value)
        elif names_secret(name):
            raise InputError(not_known(place))
    for container in _containers(token, inputs):
        container.each("envs")  # an unknown list may hold anything
        for argument_list in ("args", "commands"):
            previous = ""
            for argument in container.each(argument_list):
                word = _text(argument.get())
                option = _OPTION.fullmatch(word)
                name, value = (option[1], option[2]) if option else (previous, word)
                yield argument.key(), name, value
                previous = word.lstrip("-") if word.startswith("-") and not option else ""
    yield from _attributes(token, inputs)
    yield from _headers(token, inputs)


def _headers(token: str, inputs: Inputs) -> Iterator[tuple[str, str, str]]:
    """The same for the headers of requests that Google sends; masked ones are in the state all the same."""
    if token not in _HEADERS:
        return
    path = _HEADERS[token]
    headers = inputs.get(*path)
    for name in headers if isinstance(headers, Mapping) else ():
        value = _text(inputs.get(*path, name))
        # `Authorization` names no secret, and holds one.
        named = "token" if is_credential_header(name) else name
        yield inputs.key(*path, name), named, value


def _variables(nested: object, path: tuple[str, ...]) -> Iterator[tuple[str, str, object]]:
    """Path, name and value of each environment variable, at any depth and on any type of resource."""
    if isinstance(nested, list | tuple):
        for number, entry in enumerate(nested):
            yield from _variables(entry, (*path, str(number)))
    for key, inner in nested.items() if isinstance(nested, Mapping) else ():
        here = (*path, str(key))
        if isinstance(inner, list | tuple) and key in ("env", "envs"):
            named = [(number, entry) for number, entry in enumerate(inner) if isinstance(entry, Mapping)]
            for number, entry in named:
                yield ".".join((*here, str(number), "value")), _text(entry.get("name")), entry.get("value")
        elif isinstance(inner, Mapping) and _VARIABLES.fullmatch(str(key)):
            yield from ((".".join((*here, name)), name, value) for name, value in inner.items())
        else:
            yield from _variables(inner, here)


def _attributes(token: str, inputs: Inputs) -> Iterator[tuple[str, str, str]]:
    """The same for the metadata of machines."""
    for place in _machines(token, inputs):
        listed = place.each("metadata", "items")  # the API's form, in the body of a request
        for entry in listed:
            yield entry.key("value"), entry.text("key") or "", _text(entry.get("value"))
        metadata = place.get("metadata")
        for name in metadata if isinstance(metadata, Mapping) and not listed else ():
            yield place.key("metadata", name), name, _text(place.get("metadata", name))
        yield place.key("metadataStartupScript"), "", _text(place.get("metadataStartupScript"))


def no_external_address(token: str, inputs: Inputs, _config: PolicyConfig) -> Iterator[Problem]:
    """Machines with accelerators have no address on the internet: they are reached through Google's network."""
    if token == SERVICE or hardware_of(token, inputs) is None:
        return
    for place in _machines(token, inputs):
        for interface in place.each("networkInterfaces"):
            for kind in ("accessConfigs", "ipv6AccessConfigs"):
                if interface.get(kind):
                    yield _open(interface.key(kind), "set")
        networks = [place.at("networkConfig"), *place.each("networkConfigs")]
        for network in networks:
            if network.switch("enableExternalIps"):
                yield _open(network.key("enableExternalIps"), "true")


def _machines(token: str, inputs: Inputs) -> list[Inputs]:
    if token in (INSTANCE, TPU_VM):
        return [inputs]
    hardware = hardware_of(token, inputs)
    return [node.inputs for node in hardware.nodes] if isinstance(hardware, Lease) else []


def _open(key: str, value: str) -> Problem:
    return Problem(
        key,
        value,
        "the machine can be reached, and attacked, from the whole internet.",
        "omit it, and connect through IAP (`gcloud compute ssh --tunnel-through-iap`); for downloads give the "
        "subnetwork Private Google Access or Cloud NAT.",
    )


def _text(value: object) -> str:
    return "" if value is None else str(value)
