"""Variables and addresses for clients that were written elsewhere: Google's libraries, gcloud, Terraform, Docker.

Owns what each of them reads. The provider and the program read `bezel_localcloud.control.environment`, which is part
of it.
"""

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from bezel_base.errors import Problem, WrongValueError
from bezel_base.terminal.blocks import Block, Line, NamedValues
from bezel_base.text.shell import shell_word
from bezel_localcloud import PROGRAM
from bezel_localcloud.control import environment as own_environment
from bezel_localcloud.core.paths import Endpoint, Paths

# The user's own variables, which clients would prefer to those set here: a real token must not reach localcloud.
FOREIGN = (
    "GOOGLE_OAUTH_ACCESS_TOKEN",
    "GOOGLE_CREDENTIALS",
    "GOOGLE_CLOUD_KEYFILE_JSON",
    "GCLOUD_KEYFILE_JSON",
    "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT",
    "CLOUDSDK_AUTH_ACCESS_TOKEN",
    "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE",
    "CLOUDSDK_AUTH_IMPERSONATE_SERVICE_ACCOUNT",
    "CLOUDSDK_CORE_ACCOUNT",
    "STORAGE_EMULATOR_HOST",
)
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


@cache
def _table() -> dict[str, dict[str, str]]:
    return tomllib.loads((Path(__file__).parent / "data" / "clients.toml").read_text(encoding="utf-8"))


def api_names() -> list[str]:
    """Names of the served APIs."""
    return list(_table())


def full_api_names(names: Iterable[str], option: str = "--enable") -> list[str]:
    """The full names of APIs, of words that name one or several with commas between them, or `all`.

    Args:
        names: E.g. `run,secretmanager`, or `run.googleapis.com`.
        option: The setting that has the words, for the error.

    Raises:
        WrongValueError: localcloud does not serve one of them.
    """
    served = {name.partition(".")[0]: name for name in api_names()}
    short = [name.removesuffix(".googleapis.com") for word in names for name in word.split(",")]
    if unknown := sorted(set(short) - {*served, "all"}):
        repair = f"choose from {', '.join(served)}, or all."
        raise WrongValueError(Problem(option, ",".join(unknown), "localcloud does not serve this API.", repair))
    return sorted(served.values()) if "all" in short else [served[name] for name in short]


def api_endpoints(endpoint: Endpoint) -> dict[str, str]:
    """The address of each served API, as a client library takes it in `api_endpoint`."""
    return {name: f"{endpoint.base}{row['endpoint']}" for name, row in _table().items()}


def environment(endpoint: Endpoint, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that point every client to a localcloud that understands any.

    Args:
        endpoint: The localcloud.
        environ: The variables that a client has otherwise: where they name a proxy, it is left out for localcloud.
    """
    variables = own_environment(endpoint) | {
        # google-cloud-storage for Python, which with an emulator's variable would leave out its credentials.
        "API_ENDPOINT_OVERRIDE": endpoint.base,
        "CLOUDSDK_CORE_PROJECT": endpoint.project,
        "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE": str(endpoint.credentials),
        "CLOUDSDK_AUTH_TOKEN_HOST": f"{endpoint.base}/token",
        # gcsfs asks for the kind of each bucket by gRPC, and waits a minute for an answer.
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        # gcloud stores tokens by the name of the account, which is the same in every localcloud.
        "CLOUDSDK_CONFIG": str(endpoint.directory / "gcloud"),
    }
    if endpoint.emulator:
        variables["STORAGE_EMULATOR_HOST"] = endpoint.emulator
    for name, row in _table().items():
        label = name.partition(".")[0].upper()
        variables[f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{label}"] = f"{endpoint.base}/{row['gcloud']}"
    if any(environ.get(name) or environ.get(name.upper()) for name in _PROXIES):
        excepted = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
        hosts = [host for host in excepted.split(",") if host and host not in {"127.0.0.1", "localhost"}]
        variables |= dict.fromkeys(("no_proxy", "NO_PROXY"), ",".join([*hosts, "127.0.0.1", "localhost"]))
    return variables


def description(endpoint: Endpoint) -> dict[str, object]:
    """What a program needs to know to use a localcloud, as JSON."""
    return {
        "base": endpoint.base,
        "emulator": endpoint.emulator,
        "tls": endpoint.tls,
        "authority": str(endpoint.authority) if endpoint.tls else "",
        "project": endpoint.project,
        "credentials": str(endpoint.credentials),
        "external_account": str(endpoint.external_account),
        "directory": str(endpoint.directory),
        "pid": endpoint.pid,
        "endpoints": api_endpoints(endpoint),
        "environment": environment(endpoint),
    }


def instructions(endpoint: Endpoint, program: str = PROGRAM) -> Iterator[Block]:
    """How to point clients to a localcloud, for a reader.

    Args:
        endpoint: The localcloud.
        program: The program that prints the variables, as a user types it.
    """
    logs = Paths(endpoint.directory).daemon_log.parent
    rows = {
        "project": endpoint.project,
        "key file": endpoint.credentials,
        "or": f"{endpoint.external_account}, for clients that get tokens at a fixed address with a key file",
        "data": endpoint.directory,
        "logs": f"{logs}/daemon.log, and wire.jsonl with a line for each request",
        "registry": endpoint.base.removeprefix("http://"),
    }
    if endpoint.tls:
        rows |= {"https": endpoint.tls, "authority": f"{endpoint.authority}, which clients of the https address trust"}
    yield NamedValues([*rows.items()])
    yield from map(Line, ("", "Point clients at it:", ""))
    yield Line(f'  eval "$({program} env --dir {shell_word(endpoint.directory)})"', is_verbatim=True)
    yield from map(Line, ("", "Or pass the address of an API to a client library (api_endpoint):", ""))
    yield NamedValues([*api_endpoints(endpoint).items()])
