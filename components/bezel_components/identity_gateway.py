"""Gateway of nodes without an external address: a small Cloud Run service that lets only its invokers through.

A node serves every client that reaches its port, so only this service may reach it: it alone has an interface in the
node's network (direct VPC egress), and Cloud Run lets only invokers through to it. Behind Cloud Run's identity check
runs HAProxy with the configuration that `gateway_configuration` writes.

Owns the service, its account (without a role, but for the right to call the fallback) and its invokers. Leaves out the
network with its firewall, and the nodes: other components, which this one waits for if they are in its options.

- HAProxy, not nginx: nginx's open version removes a node only after requests have failed on it. Envoy and Caddy check
  nodes too, but no package of Debian or PyPI has the Envoy that would be deployed, and Caddy's configuration decodes a
  path before it is matched, while here the spelling counts.
- The image is of Debian 12's series, so that tests run the deployed proxy: 2.6, maintained until the second quarter of
  2027. The same tests pass with 3.0.11.
- The configuration is an environment variable, which a shell passes to HAProxy as its standard input: no image to
  build, no secret to grant, no file to write, which the image's user (99) could do in few places.
- CPU only while requests are served (a stream is one request), no instance without them. Health checks pause with the
  CPU; the first request makes up for them, as it skips a node that cannot be reached.
- With `fallback` a Cloud Run service serves while no node lives. The gateway's account is an invoker of it. The proxy
  then gets a second text, the program that fetches the account's identity.
- An instance counts only its own connections. So one instance takes as many requests as Cloud Run allows before there
  is a second one.

Facts: Cloud Run gives an instance at most 1000 concurrent requests; the provider's default for `deletion_protection` is
true (docs of both, November 2026).

Example:
    ```python
    from bezel_components.container_image import ContainerImage, ContainerImageArgs

    proxy = ContainerImage("proxy", ContainerImageArgs(
        project="acme-llm", location="us-east5", repository_id="gateway-hub", image=IMAGE, tag=TAG,
    ))
    gateway = IdentityGateway(
        "gateway",
        IdentityGatewayArgs(project="acme-llm", location="us-east5", service="chat-tpu", account_id="chat-gateway",
                            image=proxy.reference, nodes=("10.64.0.5",), network=network.network,
                            subnetwork=network.gateway_subnetwork, invokers=("group:chat@acme.example",)),
        opts=pulumi.ResourceOptions(depends_on=[proxy, network]),
    )
    pulumi.export("gateway", gateway.url)
    ```
"""

from collections.abc import Sequence
from typing import Any

import pulumi
from pulumi_gcp import cloudrunv2
from pydantic import Field

from bezel_components.base.arguments import ComponentArgs, Text, child_options
from bezel_components.base.check_resource import camel_case
from bezel_components.base.cloud_run_service import CloudRunServiceArgs, declare_service
from bezel_components.base.granted_roles import INVOKER
from bezel_components.config.gateway import PROBE_ATTEMPTS, PROBE_PATH, NodeAddressError, gateway_configuration
from bezel_components.config.gateway_fallback import IDENTITY, SOCKET_OWNER, FallbackUrlError, identity_program
from bezel_components.runtime_identity import RuntimeIdentity, RuntimeIdentityArgs

IMAGE = "library/haproxy"
"""Path of the proxy's image on Docker Hub."""
TAG = "2.6.33"
"""As of 2026-08-27, source: docker-library/official-images, pull request 22151."""
CONFIGURATION = "GATEWAY_CONFIGURATION"
"""The environment variable that holds HAProxy's configuration."""
SCRIPT = f"""\
exec haproxy -db -f /dev/stdin <<END
${CONFIGURATION}
END
"""
SCRIPT_WITH_FALLBACK = f"""\
export {SOCKET_OWNER}=$$
exec haproxy -db -f /dev/stdin 3<<LUA <<END
${IDENTITY}
LUA
${CONFIGURATION}
END
"""
_PROBE_SECONDS = 2
_REQUESTS = 1000
_DEADLINE_SECONDS = 600


class GatewayFallback(ComponentArgs):
    """A Cloud Run service that serves while no node lives; the gateway makes its own account an invoker of it."""

    location: str
    """Region of the service."""
    service: str
    """Its name."""
    url: Text
    """Its URL, which is the audience of the gateway's tokens too."""


class IdentityGatewayArgs(CloudRunServiceArgs):
    """Arguments of `IdentityGateway`. The service's region is also its subnetwork's, and need not be the nodes'."""

    account_id: str
    """Id of the account that is made for it: 6 to 30 characters, unique in the project."""
    nodes: tuple[Text, ...] = Field(min_length=1)
    """Internal addresses of the nodes; one that resolves to "" is a missing node."""
    machines: int | None = None
    """Nodes at a time, where `nodes` are all addresses that they may get; None where each is that of a node."""
    port: int = 8000
    """vLLM's port on each node."""
    network: Text
    """Network of the nodes: its name, or `projects/P/global/networks/N`."""
    subnetwork: Text
    """Subnetwork in the service's region: its name, or `projects/P/regions/R/subnetworks/S`."""
    tags: tuple[str, ...] = ()
    """Network tags of the service."""
    fallback: GatewayFallback | None = None
    """What serves while no node lives; without one callers get an error then."""
    max_instances: int = Field(2, ge=1)
    timeout_seconds: int = Field(3600, ge=1, le=3600)
    """Time limit of a request with its whole response."""


class IdentityGateway(pulumi.ComponentResource):
    """HAProxy as a Cloud Run service in front of nodes.

    Attributes:
        url: Address of the gateway.
        revision: Name of the latest revision that became ready.
        created_revision: Name of the latest one that was made, ready or not.
        resource_name: `projects/P/locations/L/services/S`, computed.
        declared: Those of the service's inputs that the platform returns, by the engine's names, for a comparison with
            the served state.
    """

    def __init__(self, name: str, args: IdentityGatewayArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:gateway:IdentityGateway", name, None, opts)
        self.resource_name = args.resource_name
        account = RuntimeIdentity(
            name,
            RuntimeIdentityArgs(project=args.project, account_id=args.account_id, description="Runs a gateway"),
            opts=child_options(self, opts),
        )
        grants = [_grant(self, name, args, opts, account)] if args.fallback else []
        inputs: dict[str, Any] = {
            "ingress": args.ingress,
            "labels": dict(args.labels),
            "template": _template(args, account.email),
            **args.accepted_audiences,
        }
        self.declared = {camel_case(key): value for key, value in inputs.items()}
        service = declare_service(
            self, name, args, opts, inputs=inputs, seconds=_DEADLINE_SECONDS, depends_on=[account, *grants]
        )
        self.url = service.uri
        self.revision = service.latest_ready_revision
        self.created_revision = service.latest_created_revision
        outputs = ("url", "revision", "created_revision", "resource_name")
        self.register_outputs({key: getattr(self, key) for key in outputs})


def _grant(
    component: pulumi.Resource,
    name: str,
    args: IdentityGatewayArgs,
    opts: pulumi.ResourceOptions | None,
    account: RuntimeIdentity,
) -> cloudrunv2.ServiceIamMember:
    """The right of the gateway's account to call the fallback."""
    assert args.fallback is not None  # noqa: S101 - the caller has looked
    return cloudrunv2.ServiceIamMember(
        f"{name}-fallback-invoker",
        project=args.project,
        location=args.fallback.location,
        name=args.fallback.service,
        role=INVOKER,
        member=f"serviceAccount:{account.email}",
        opts=child_options(component, opts, depends_on=[account]),
    )


def _template(args: IdentityGatewayArgs, account: str) -> cloudrunv2.ServiceTemplateArgs:
    interface = cloudrunv2.ServiceTemplateVpcAccessNetworkInterfaceArgs(
        network=args.network, subnetwork=args.subnetwork, tags=list(args.tags)
    )
    return cloudrunv2.ServiceTemplateArgs(
        execution_environment="EXECUTION_ENVIRONMENT_GEN2",
        service_account=account,
        scaling=cloudrunv2.ServiceTemplateScalingArgs(min_instance_count=0, max_instance_count=args.max_instances),
        max_instance_request_concurrency=_REQUESTS,
        timeout=f"{args.timeout_seconds}s",
        containers=[_container(args)],
        vpc_access=cloudrunv2.ServiceTemplateVpcAccessArgs(
            egress="PRIVATE_RANGES_ONLY", network_interfaces=[interface]
        ),
    )


def _container(args: IdentityGatewayArgs) -> cloudrunv2.ServiceTemplateContainerArgs:
    variables = {CONFIGURATION: _configuration(args)} | ({IDENTITY: identity_program()} if args.fallback else {})
    return cloudrunv2.ServiceTemplateContainerArgs(
        image=args.image,
        commands=["sh"],
        args=["-c", SCRIPT_WITH_FALLBACK if args.fallback else SCRIPT],
        envs=[cloudrunv2.ServiceTemplateContainerEnvArgs(name=each, value=value) for each, value in variables.items()],
        ports=cloudrunv2.ServiceTemplateContainerPortsArgs(container_port=8080),
        resources=cloudrunv2.ServiceTemplateContainerResourcesArgs(
            limits={"cpu": "1", "memory": "512Mi"}, cpu_idle=True, startup_cpu_boost=False
        ),
        startup_probe=cloudrunv2.ServiceTemplateContainerStartupProbeArgs(
            period_seconds=_PROBE_SECONDS,
            timeout_seconds=_PROBE_SECONDS,
            failure_threshold=PROBE_ATTEMPTS + 10,
            http_get=cloudrunv2.ServiceTemplateContainerStartupProbeHttpGetArgs(path=PROBE_PATH, port=8080),
        ),
    )


def _configuration(args: IdentityGatewayArgs) -> pulumi.Input[str]:
    """The proxy's configuration; known in a preview if the addresses are."""
    fallback = args.fallback.url if args.fallback else ""

    def write(texts: Sequence[Any]) -> str:
        url, *addresses = texts
        try:
            return gateway_configuration(addresses, args.port, args.machines, url or None)
        except (FallbackUrlError, NodeAddressError) as error:
            raise pulumi.RunError(f"{args.service}: {error}") from None

    texts = (fallback, *args.nodes)
    known_texts = [text for text in texts if isinstance(text, str)]
    return write(known_texts) if len(known_texts) == len(texts) else pulumi.Output.all(*texts).apply(write)
