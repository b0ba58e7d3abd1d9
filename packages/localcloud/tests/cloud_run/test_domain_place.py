"""The place of the domain that a door calls: that of its load balancer with TLS, and no other."""

import pytest

from bezel_localcloud.services.cloud_run.runtime.domain_place import variables_of_domain

DOMAIN, AT = "llm.acme.example", "127.250.0.2:443"
PLACE = {"DOOR_CONNECT_TO": AT, "SSL_CERT_FILE": "/cloud/authority.pem"}


def balancers(*open_balancers):
    rows = [{"scheme": scheme, "at": at, "domains": domains} for scheme, at, domains in open_balancers]
    return {"authority": "/cloud/authority.pem", "balancers": rows}


OTHER, PLAIN, OWN = (
    ("https", "127.250.0.1:443", ["other.acme.example"]),
    ("http", "127.250.0.2:80", [DOMAIN]),
    ("https", AT, [DOMAIN]),
)


@pytest.mark.parametrize(
    ("url", "rows", "place"),
    [
        (f"https://{DOMAIN}", (OTHER, PLAIN, OWN), PLACE),
        (f"https://{DOMAIN}", (OTHER, PLAIN), {}),
        (f"http://{DOMAIN}", (OWN,), {}),
        ("https://127.0.0.1:8443", (OWN,), {}),
        ("", (OWN,), {}),
    ],
)
def test_door_connects_to_the_balancer_of_its_domain_alone(url, rows, place):
    assert variables_of_domain(balancers(*rows), {"DOOR_UPSTREAM": url}) == place
