"""Place of the load balancer of the domain that a door calls, as variables: the domain is in no DNS. Pure.

The certificate is signed by the folder's own authority, so that is the one which the door trusts.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from bezel_localcloud.core.json_types import Json

UPSTREAM = "DOOR_UPSTREAM"


def variables_of_domain(balancers: Json, variables: Mapping[str, str]) -> dict[str, str]:
    """Variables by which a door reaches the domain in its URL; {} where no balancer listens for it.

    Args:
        balancers: Load balancers as localcloud shows them.
        variables: Variables of the container.
    """
    url = urlsplit(variables.get(UPSTREAM, ""))
    for balancer in balancers["balancers"] if url.scheme == "https" else ():
        if balancer["scheme"] == "https" and url.hostname in balancer["domains"]:
            return {"DOOR_CONNECT_TO": str(balancer["at"]), "SSL_CERT_FILE": str(balancers["authority"])}
    return {}
