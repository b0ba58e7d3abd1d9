"""Calls of google-auth with the key file, google-cloud-iam (credentials), and google-cloud-logging over HTTP.

Leaves out the tokens of a metadata server: see google_metadata.py.
"""

import datetime as dt
import json
import logging
import os
from pathlib import Path

import google.auth
from google.auth import exceptions, impersonated_credentials
from google.auth.transport.requests import AuthorizedSession, Request
from google.cloud import iam_credentials_v1
from google.cloud import logging as cloud_logging
from google.oauth2 import id_token, service_account
from google_calls import PROJECT, Report, base, options

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
KEY_FILE = Path(os.environ["GOOGLE_APPLICATION_CREDENTIALS"])
RUNTIME = f"runtime@{PROJECT}.iam.gserviceaccount.com"
AUDIENCE = "https://service.example"
PROJECT_URL = f"{base('RESOURCE_MANAGER')}/v1/projects/{PROJECT}"
request = Request()
report = Report("google-auth")


def read_project(credentials: google.auth.credentials.Credentials) -> str:
    """The project's id, read with some credentials."""
    with AuthorizedSession(credentials) as session:
        response = session.get(PROJECT_URL)
        response.raise_for_status()
        return str(response.json()["projectId"])


def own(got: str) -> bool:
    """Whether a project was read."""
    return got == PROJECT


def keys() -> None:
    """Access tokens of the key file: asked for, and signed by the client itself."""
    report.call("google.auth.default", google.auth.default, lambda got: got[1] == PROJECT)
    report.call("google.auth.default, token", lambda: read_project(google.auth.default(scopes=[SCOPE])[0]), own)
    scoped = service_account.Credentials.from_service_account_file(KEY_FILE, scopes=[SCOPE])
    report.call("service_account.Credentials", lambda: read_project(scoped), own)
    signed = scoped.with_always_use_jwt_access(True)
    report.call("self-signed JWT with a scope", lambda: read_project(signed), own)

    def with_audience(host: str) -> str:
        plain = service_account.Credentials.from_service_account_file(KEY_FILE)
        with AuthorizedSession(plain, default_host=host) as session:
            return str(session.get(PROJECT_URL).status_code)

    name = "self-signed JWT with an audience"
    report.call(name, lambda: with_audience("cloudresourcemanager.googleapis.com"), lambda got: got == "200")
    report.call(f"{name} of another API", lambda: with_audience("run.googleapis.com"), lambda got: got == "401")


def identities() -> None:
    """Identity tokens of the key file, verified with the published keys."""
    credentials = service_account.IDTokenCredentials.from_service_account_file(KEY_FILE, target_audience=AUDIENCE)
    report.call("IDTokenCredentials.refresh", lambda: credentials.refresh(request), lambda _: not credentials.expired)
    token = report.call("id_token.fetch_id_token", lambda: id_token.fetch_id_token(request, AUDIENCE))
    certificates = json.loads(KEY_FILE.read_text())["auth_provider_x509_cert_url"]
    report.call(
        "id_token.verify_token",
        lambda: id_token.verify_token(token, request, AUDIENCE, certs_url=certificates),
        lambda claims: claims["email"].startswith("deployer@") and claims["email_verified"],
    )


def impersonate() -> None:
    """Tokens of another account, by the address of the call that the library lets its user give."""
    source = service_account.Credentials.from_service_account_file(KEY_FILE, scopes=[SCOPE])
    address = f"{base('IAM_CREDENTIALS')}/v1/projects/-/serviceAccounts/{RUNTIME}:generateAccessToken"
    credentials = impersonated_credentials.Credentials(
        source, RUNTIME, [SCOPE], lifetime=600, iam_endpoint_override=address
    )
    report.call(
        "impersonated_credentials.Credentials",
        lambda: credentials.refresh(request),
        lambda _: 590 < (credentials.expiry - dt.datetime.now(dt.UTC).replace(tzinfo=None)).total_seconds() <= 600,
    )
    nobody = impersonated_credentials.Credentials(
        source, "none@x", [SCOPE], iam_endpoint_override=address.replace("runtime@", "nobody@")
    )

    def refusal_text() -> str:
        try:
            nobody.refresh(request)
        except exceptions.RefreshError as error:
            return str(error)
        return ""

    report.call(
        "impersonation of no account: RefreshError", refusal_text, lambda text: "Unknown service account" in text
    )


def short_lived() -> None:
    """The IAM Credentials client."""
    report = Report("google-cloud-iam")
    client = iam_credentials_v1.IAMCredentialsClient(transport="rest", client_options=options("IAM_CREDENTIALS"))
    name = f"projects/-/serviceAccounts/{RUNTIME}"
    report.call(
        "generate_access_token",
        lambda: client.generate_access_token(name=name, scope=[SCOPE], lifetime=dt.timedelta(seconds=300)),
        lambda got: got.access_token and got.expire_time,
    )
    report.raises(
        "generate_access_token without a scope",
        "INVALID_ARGUMENT",
        lambda: client.generate_access_token({"name": name}),
    )
    report.raises(
        "generate_access_token for no account",
        "NOT_FOUND",
        lambda: client.generate_access_token(name=name.replace("runtime", "nobody"), scope=[SCOPE]),
    )
    report.call(
        "generate_id_token", lambda: client.generate_id_token(name=name, audience=AUDIENCE), lambda got: got.token
    )
    report.call("sign_blob", lambda: client.sign_blob(name=name, payload=b"x"))
    report.call("sign_jwt", lambda: client.sign_jwt(name=name, payload="{}"))


def logs() -> None:
    """The logging client over HTTP."""
    report = Report("google-cloud-logging")
    client = cloud_logging.Client(_use_grpc=False, client_options=options("LOGGING"))
    text = 'resource.type="cloud_run_job" AND textPayload:"METADATA"'
    report.call(
        "list_entries",
        lambda: list(client.list_entries(filter_=text, order_by=cloud_logging.DESCENDING)),
        lambda entries: len(entries) > 0 and "METADATA" in entries[0].payload,
    )
    report.call(
        "list_entries, pages of 1",
        lambda: list(client.list_entries(filter_='resource.type="cloud_run_job"', page_size=1, max_results=2)),
        lambda entries: len({entry.insert_id for entry in entries}) == 2,
    )
    report.call("logger.log_text", lambda: client.logger("tried").log_text("text"))
    report.call("list_sinks", lambda: list(client.list_sinks()))


if __name__ == "__main__":
    logging.disable()
    keys()
    identities()
    impersonate()
    short_lived()
    logs()
