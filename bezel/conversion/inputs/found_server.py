"""A server as an input describes it, before it is judged by what a stack file can say. Plain values.

Texts are as they were written; a variable's value may be a credential until `credentials` took it out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bezel_base.errors import NOT_SHOWN, format_value

Kind = Literal["not converted", "assumed", "changes"]


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing to know about a conversion.

    Attributes:
        kind: "not converted": the stack file cannot say it, or may not. "assumed": the input does not say it.
            "changes": it will be different once the stack file is deployed.
        key: Where it stands in the input, or the setting.
        value: Its value, short, and hidden where it may be a credential; "" without one.
        reason: Why, as a sentence.
        repair: What to do about it, as a sentence; "" for nothing.
    """

    kind: Kind
    key: str
    value: str
    reason: str
    repair: str = ""

    def line(self) -> str:
        """The remark for people, on one line."""
        head = f"{self.key}: {self.value}" if self.value else self.key
        repair = f"{self.repair[0].upper()}{self.repair[1:]}" if self.repair else ""
        return " ".join(part for part in (f"{head}: {self.reason}", repair) if part)


def remark(kind: Kind, key: str, value: object, reason: str, repair: str = "", *, hidden: bool = False) -> Remark:
    """A remark with its value shortened, and without what looks like a credential."""
    shown = NOT_SHOWN if hidden else "" if value is None or value == "" else format_value(value)
    return Remark(kind, format_value(key), shown, reason, repair)


@dataclass(frozen=True, slots=True)
class Mount:
    """A bucket that is mounted into the container."""

    bucket: str
    path: str
    options: tuple[str, ...] = ()
    read_only: bool = True


@dataclass(slots=True, kw_only=True)
class FoundServer:
    """What a reader found; None and empty where the input does not say it.

    Attributes:
        form: The input's form, for sentences, e.g. "gcloud run deploy".
        on_cloud_run: Whether it is a service of Cloud Run, which can be adopted.
        tokens: Command and arguments of the server, image's entrypoint included where it is known.
        secrets: Variable -> (id of the secret, version).
        public: Whether everyone may call it.
        probe: Startup probe in Cloud Run's own names: `httpGet.path`, `tcpSocket.port`, `periodSeconds` ...
    """

    form: str
    on_cloud_run: bool = False
    name: str = ""
    project: str = ""
    region: str = ""
    image: str = ""
    tokens: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, tuple[str, str]] = field(default_factory=dict)
    port: str = ""
    cpu: str = ""
    memory: str = ""
    gpus: int | None = None
    gpu_type: str = ""
    zonal_redundancy: bool | None = None
    min_instances: int | None = None
    max_instances: int | None = None
    concurrency: int | None = None
    timeout: str = ""
    account: str = ""
    ingress: str = ""
    public: bool | None = None
    invokers: tuple[str, ...] = ()
    network: str = ""
    subnetwork: str = ""
    egress: str = ""
    tags: tuple[str, ...] = ()
    probe: dict[str, str] = field(default_factory=dict)
    liveness: dict[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    cpu_boost: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)

    def leave(self, key: str, value: object, reason: str, repair: str = "", *, hidden: bool = False) -> None:
        """Note what no setting of a stack file says."""
        self.remarks.append(remark("not converted", key, value, reason, repair, hidden=hidden))
