"""Endpoints of the Google APIs: Google's own address, or the override that the Pulumi provider honours too.

Both read the same environment variables, so that this package and the provider always talk to the same server.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

from bezel.rest.errors import AddressError
from bezel_base.errors import Problem

_GOOGLE = {
    "ARTIFACT_REGISTRY": "https://artifactregistry.googleapis.com/v1/",
    "BILLING_BUDGETS": "https://billingbudgets.googleapis.com/v1/",
    "CERTIFICATE_MANAGER": "https://certificatemanager.googleapis.com/v1/",
    "CLOUD_BILLING": "https://cloudbilling.googleapis.com/v1/",
    "CLOUD_QUOTAS": "https://cloudquotas.googleapis.com/v1/",
    "CLOUD_RUN_V2": "https://run.googleapis.com/v2/",
    "CLOUD_SCHEDULER": "https://cloudscheduler.googleapis.com/v1/",
    "COMPUTE": "https://compute.googleapis.com/compute/v1/",
    "DNS": "https://dns.googleapis.com/dns/v1/",
    "IAM_BETA": "https://iam.googleapis.com/v1/",
    "IAM_CREDENTIALS": "https://iamcredentials.googleapis.com/v1/",
    "KMS": "https://cloudkms.googleapis.com/v1/",
    "LOGGING": "https://logging.googleapis.com/v2/",
    "MONITORING": "https://monitoring.googleapis.com/",  # as the provider has it, without a version
    "RESOURCE_MANAGER": "https://cloudresourcemanager.googleapis.com/v1/",
    "SECRET_MANAGER": "https://secretmanager.googleapis.com/v1/",
    "SERVICE_USAGE": "https://serviceusage.googleapis.com/v1/",
    "STORAGE": "https://storage.googleapis.com/storage/v1/",
    "STS": "https://sts.googleapis.com/v1/",  # not one of the provider's: it takes the address from the credentials
    "TPU_V2ALPHA1": "https://tpu.googleapis.com/v2alpha1/",
    "VERTEX_AI": "https://aiplatform.googleapis.com/v1/",  # a region has an address of its own
}


def endpoint(api: str, environ: Mapping[str, str] | None = None) -> str:
    """The base address of an API, with its version segment (where the provider has one there) and a slash at the end.

    Args:
        api: The provider's name for it, as in `GOOGLE_<api>_CUSTOM_ENDPOINT`.
        environ: The environment to read the override from; the process's by default.

    Raises:
        ValueError: The API is not one of those that the program uses.
        AddressError: Its override is not a safe address.
    """
    if api not in _GOOGLE:
        raise ValueError(f"unknown API {api!r}; known: {', '.join(sorted(_GOOGLE))}")
    variable = f"GOOGLE_{api}_CUSTOM_ENDPOINT"
    override = (os.environ if environ is None else environ).get(variable, "").strip()
    if not override:
        return _GOOGLE[api]
    return url_for_token(override, variable).rstrip("/") + "/"


def regional_endpoint(api: str, region: str, environ: Mapping[str, str] | None = None) -> str:
    """The base address of an API in a region: `https://REGION-HOST/…`, or the override of `endpoint`.

    Raises:
        AddressError: Its override is not a safe address.
    """
    url = endpoint(api, environ)
    return url.replace("https://", f"https://{region}-", 1) if url == _GOOGLE[api] else url


def url_for_token(url: str, what: str) -> str:
    """Return `url` if a token may be sent to it: https anywhere, plain http on this machine only.

    Raises:
        AddressError: It is neither; the text names `what`.
    """
    parts, is_loopback = urlsplit(url), False
    with suppress(ValueError):
        is_loopback = parts.hostname == "localhost" or ip_address(parts.hostname or "").is_loopback
    if (parts.scheme == "https" and parts.hostname) or (parts.scheme == "http" and is_loopback):
        return url
    text = "a token sent to this address could be read on the way."
    raise AddressError(Problem(what, url, text, "use https, or http to 127.0.0.1 or localhost."))
