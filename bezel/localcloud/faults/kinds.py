"""Kinds of faults and their parameters: the table behind `bezel local fault list` and the daemon's validation."""

from dataclasses import dataclass
from typing import Literal

Value = str | int | float
# Where a fault is carried out: in Cloud Run and its neighbours, in the container's process, at the server that answers
# requests, on the machine's disk; or "at once", if it is over as soon as it is requested.
Place = Literal["platform", "container", "requests", "machine", "at once"]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kind.

    Attributes:
        default: Its value if none is given; also sets the parameter's type.
        text: Its meaning, with its unit.
        least: The lowest value of a number.
        most: The highest value of a number.
        choices: Allowed texts; empty for any.
    """

    name: str
    default: Value
    text: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kind:
    """One kind of fault."""

    name: str
    text: str
    place: Place
    parameters: tuple[Parameter, ...] = ()

    def parameter(self, name: str) -> Parameter | None:
        """A parameter by its name."""
        return next((one for one in self.parameters if one.name == name), None)


_ANYWHERE = ("api", "service", "token")


def _matching(at: str, count: int, places: tuple[str, ...] = _ANYWHERE) -> tuple[Parameter, ...]:
    """Parameters that select the requests that are struck."""
    return (
        Parameter(
            "at", at, "whose requests: Google's APIs, its token endpoint, or the deployed services", choices=places
        ),
        Parameter("method", "*", "the method that a request must have, * for any"),
        Parameter("path", "*", "the path that it must have; * stands for any text"),
        Parameter("after", 0, "matching requests that pass before", least=0),
        Parameter("count", count, "matching requests that are struck, 0 for all until it is cleared", least=0),
    )


_ZONE = Parameter("zone", "*", "the zone; * stands for any text")
_OPERATIONS = (
    Parameter(
        "api",
        "run",
        "whose operations",
        choices=("run", "artifactregistry", "serviceusage", "tpu", "compute"),
    ),
    Parameter("after", 0, "operations that end well before", least=0),
    Parameter("count", 1, "operations begun from now on that are struck, 0 for all until it is cleared", least=0),
)

_TABLE = (
    Kind(
        "quota-exceeded",
        "the project has fewer GPUs in the region than the service asks for",
        "platform",
        (Parameter("quota", 0, "GPUs that the project may have in a region", least=0),),
    ),
    Kind(
        "image-missing",
        "the container image does not exist",
        "platform",
        (
            Parameter(
                "seen",
                "look-up",
                "where it is missing first: `look-up` of its digest, or only when Cloud Run pulls it (`deploy`)",
                choices=("look-up", "deploy"),
            ),
        ),
    ),
    Kind("bucket-permission-missing", "the service's account may not read the bucket with the weights", "platform"),
    Kind("secret-permission-missing", "the service's account may not read its secrets", "platform"),
    Kind(
        "secret-missing",
        "a secret that the service asks for does not exist",
        "platform",
        (Parameter("secret", "*", "the secret's name; * stands for any text"),),
    ),
    Kind("out-of-memory", "the accelerator's memory does not suffice to load the model", "container"),
    Kind(
        "unknown-argument",
        "the image holds another vLLM, whose parser refuses an argument",
        "container",
        (Parameter("argument", "--kv-cache-dtype", "the argument that it does not know"),),
    ),
    Kind("never-healthy", "the container runs, and never listens", "container"),
    Kind(
        "slow-start",
        "loading takes longer",
        "container",
        (Parameter("factor", 20.0, "how many times longer", least=1),),
    ),
    Kind(
        "crash-loop",
        "each container ends some time after it became healthy",
        "container",
        (Parameter("after_seconds", 5.0, "seconds that it serves", least=0),),
    ),
    Kind(
        "engine-death",
        "vLLM's engine dies under load",
        "container",
        (Parameter("after_requests", 3, "the request of a container that kills it", least=1),),
    ),
    Kind("disk-full", "the container's disk is full when vLLM writes its compile cache", "container"),
    Kind(
        "server-errors",
        "a burst of answers with an error's status, 5xx or 4xx",
        "requests",
        (Parameter("status", 503, "the HTTP status", least=400, most=599), *_matching("api", 3)),
    ),
    Kind(
        "rate-limited",
        "a burst of answers 429 with Retry-After",
        "requests",
        (Parameter("retry_after", 1, "seconds that Retry-After asks for", least=0), *_matching("api", 3)),
    ),
    Kind(
        "dropped-connections",
        "connections that break",
        "requests",
        (
            Parameter(
                "when",
                "before",
                "before the request takes effect, after it did and before the answer, or in the answer's body",
                choices=("before", "after", "body"),
            ),
            *_matching("api", 3),
        ),
    ),
    Kind(
        "slow-connections",
        "answers that are late",
        "requests",
        (Parameter("seconds", 10.0, "how late", least=0), *_matching("service", 0)),
    ),
    Kind(
        "truncated-streams",
        "streams of a service that end early and look complete to HTTP",
        "requests",
        (
            Parameter("events", 2, "events that still arrive", least=0),
            *_matching("service", 0, ("service",)),
        ),
    ),
    Kind("malformed-json", "JSON answers cut in half, all else in order", "requests", _matching("api", 1)),
    Kind(
        "clock-skew",
        "this machine's clock is off from Google's when it signs for a token",
        "requests",
        (Parameter("seconds", 600.0, "how far it is ahead; negative: behind"),),
    ),
    Kind("operation-fails-late", "an operation ends with an error after its work is done", "platform", _OPERATIONS),
    Kind("operation-never-ends", "an operation is never done", "platform", _OPERATIONS),
    Kind(
        "service-changed",
        "somebody else changes the deployed services",
        "at once",
        (Parameter("max_instances", 2, "the greatest number of instances that they set", least=1, most=100),),
    ),
    Kind("service-deleted", "somebody else deletes the deployed services", "at once"),
    Kind(
        "lease-stock-out",
        "a zone has no machine left, and after a while gives up on requests for one",
        "platform",
        (
            _ZONE,
            Parameter(
                "code",
                "ZONE_RESOURCE_POOL_EXHAUSTED",
                "what it says then",
                choices=("ZONE_RESOURCE_POOL_EXHAUSTED", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"),
            ),
        ),
    ),
    Kind("lease-zone-refused", "a zone takes no flex-start requests", "platform", (_ZONE,)),
    Kind(
        "lease-never-active",
        "a machine that was granted is never ready, and fails",
        "platform",
        (Parameter("seconds", 3600.0, "seconds of the platform's time until it has failed", least=0),),
    ),
    Kind(
        "lease-slow-delete",
        "a lease takes longer to be deleted",
        "platform",
        (Parameter("seconds", 1800.0, "further seconds of the platform's time", least=0),),
    ),
    Kind(
        "lease-late-fill",
        "the request for a lease is answered with a time-out, and stored much later",
        "platform",
        (Parameter("seconds", 4200.0, "how much later, in seconds of the platform's time", least=0),),
    ),
    Kind(
        "lease-quota",
        "the project may have fewer accelerators than it asks for",
        "platform",
        (Parameter("units", 0, "chips or GPUs that it may have of each quota", least=0),),
    ),
    Kind("lease-preempted", "the platform takes every machine away that is leased", "at once"),
    Kind("lease-ends", "the run duration of every lease is over", "at once"),
    Kind("localcloud-disk-full", "the disk of this machine is full where localcloud keeps its data", "machine"),
)  # fmt: skip

KINDS: dict[str, Kind] = {kind.name: kind for kind in _TABLE}
