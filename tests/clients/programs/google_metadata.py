"""Calls of google-auth in a container: credentials from the metadata server that GCE_METADATA_HOST names.

Started without GOOGLE_APPLICATION_CREDENTIALS, as a container is.
"""

import google.auth
from google.auth import compute_engine
from google.auth.compute_engine import _metadata
from google.auth.transport.requests import AuthorizedSession, Request
from google.cloud import run_v2
from google.oauth2 import id_token
from google_calls import PARENT, PROJECT, REGION, Report, options

RUNTIME = f"runtime@{PROJECT}.iam.gserviceaccount.com"
AUDIENCE = "https://service.example"


def main() -> None:
    """Tokens of the container's account."""
    report, request = Report("google-auth"), Request()
    report.call("metadata server: is_on_gce", lambda: _metadata.is_on_gce(request), lambda got: got is True)
    default = report.call("metadata server: google.auth.default", google.auth.default, lambda got: got[1] == PROJECT)
    credentials = default[0]
    report.call(
        "compute_engine.Credentials.refresh",
        lambda: credentials.refresh(request),
        lambda _: credentials.valid and credentials.service_account_email == RUNTIME,
    )
    identity = compute_engine.IDTokenCredentials(request, AUDIENCE, use_metadata_identity_endpoint=True)
    report.call("compute_engine.IDTokenCredentials", lambda: identity.refresh(request), lambda _: identity.valid)
    report.call("metadata server: id_token.fetch_id_token", lambda: id_token.fetch_id_token(request, AUDIENCE))

    def buckets() -> int:
        with AuthorizedSession(credentials) as session:
            return int(session.get(f"{options('STORAGE').api_endpoint}/v1/b/models/o").status_code)

    report.call("metadata server: an object list that the account may read", buckets, lambda status: status == 200)
    client = run_v2.ServicesClient(transport="rest", client_options=options("CLOUD_RUN_V2"))
    report.raises(
        "metadata server: a list of services that the account may not read",
        "PERMISSION_DENIED",
        lambda: client.list_services({"parent": f"{PARENT}/locations/{REGION}"}),
        "IAM_PERMISSION_DENIED",
    )


if __name__ == "__main__":
    main()
