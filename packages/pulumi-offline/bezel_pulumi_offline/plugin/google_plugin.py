"""Plugin of the `gcp` stand-in: the engine's protocol to plain values and back, errors in the form of the engine.

Leaves the operations on resources to lifecycle/resource_calls.py. Like the published plugin it takes no secrets: the
engine unwraps them before a call and wraps returned values of the same names, and the secret properties of a type are
wrapped here.
"""

import json
import os
from collections.abc import Callable, Mapping
from typing import TypeVar

from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2 as pb

from bezel_base.text.shell import shell_word
from bezel_pulumi_offline.google.cloud import VARIABLES, Cloud
from bezel_pulumi_offline.google.errors import (
    ExistsError,
    PartlyDoneError,
    PlanError,
    ProviderError,
    go_duration,
    one_error,
)
from bezel_pulumi_offline.lifecycle.invokes import invoke
from bezel_pulumi_offline.lifecycle.resource import ResourceType
from bezel_pulumi_offline.lifecycle.resource_calls import ResourceCalls
from bezel_pulumi_offline.lifecycle.values import decode, encode
from bezel_pulumi_offline.plugin.fast_import import sdk_version
from bezel_pulumi_offline.plugin.schema import package_schema
from bezel_pulumi_offline.plugin.server import Context, Plugin, invoke_response, refuse
from bezel_pulumi_offline.resources import TYPES

_Answer = TypeVar("_Answer")
_KINDS = pb.PropertyDiff.Kind
_MODES = pb.CheckRequest.AutonamingOptions
# The bridge passes what the provider logs to the engine, with the place of the log call in the bridge's source.
_LOG_LINE = "  sdk-v2/provider2.go:571: sdk.helper_schema: "


class GooglePlugin(Plugin):
    """pulumirpc.ResourceProvider for the types in resources/."""

    sdk = "pulumi_gcp"

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """Make a provider that is not configured yet.

        Args:
            environment: Replaces the process's environment.
        """
        self._environment = os.environ if environment is None else environment
        self._engine = ResourceCalls(Cloud({}, self._environment))

    def stop(self) -> None:
        """End every wait for Google."""
        self._engine.cloud.stop()

    def GetSchema(self, request: pb.GetSchemaRequest, context: Context) -> pb.GetSchemaResponse:
        """Return the package's schema, for code of imported resources."""
        del request, context
        return pb.GetSchemaResponse(schema=json.dumps(package_schema(TYPES, sdk_version(self.sdk))))

    def CheckConfig(self, request: pb.CheckRequest, context: Context) -> pb.CheckResponse:
        """Accept any configuration, and complete it with the environment's project, region and zone."""
        del context
        inputs = request.news
        for name, variables in VARIABLES.items():
            value = next((self._environment[key] for key in variables if self._environment.get(key)), None)
            if value and name not in inputs.fields:
                inputs.fields[name].string_value = value
        return pb.CheckResponse(inputs=inputs)

    def Configure(self, request: pb.ConfigureRequest, context: Context) -> pb.ConfigureResponse:
        """Read the project, the endpoints and the other settings."""
        self._engine = self._try(context, "", lambda: ResourceCalls(Cloud(decode(request.args), self._environment)))
        return pb.ConfigureResponse(supportsPreview=True, supports_autonaming_configuration=True)

    def Check(self, request: pb.CheckRequest, context: Context) -> pb.CheckResponse:
        """Complete the inputs, or return their failures."""
        kind = self._kind(request.urn, context)
        proposed = None
        if request.HasField("autonaming"):
            naming = request.autonaming
            proposed = "" if naming.mode == _MODES.DISABLE else naming.proposed_name or None
        name = request.name or request.urn.rsplit("::", 1)[-1]
        checked = self._engine.check(
            kind, name, decode(request.news), decode(request.olds), request.randomSeed, proposed
        )
        failures = [pb.CheckFailure(property=where, reason=reason) for where, reason in checked.failures]
        return pb.CheckResponse(inputs=encode(self._engine.seal(kind, checked.inputs)), failures=failures)

    def Diff(self, request: pb.DiffRequest, context: Context) -> pb.DiffResponse:
        """Return the differences, and whether they require a new resource."""
        kind = self._kind(request.urn, context)
        changes = self._try(
            context,
            f"diffing {request.urn}",
            lambda: self._engine.diff(kind, decode(request.news), decode(request.olds), list(request.ignoreChanges)),
        )
        some = pb.DiffResponse.DIFF_SOME if changes.differing else pb.DiffResponse.DIFF_NONE
        detailed = {
            item.path: pb.PropertyDiff(kind=_KINDS.Value(item.kind + ("_REPLACE" if item.replaces else "")))
            for item in changes.differing
        }
        return pb.DiffResponse(
            changes=some,
            diffs=changes.names,
            replaces=changes.replaces,
            stables=changes.stables,
            detailedDiff=detailed,
            hasDetailedDiff=True,
            deleteBeforeReplace=changes.delete_first,
        )

    def Create(self, request: pb.CreateRequest, context: Context) -> pb.CreateResponse:
        """Create a resource."""
        kind = self._kind(request.urn, context)
        news = decode(request.properties)
        limit = self._limit(kind, "create", request)
        resource_id, properties = self._try(
            context,
            f"creating {request.urn}",
            lambda: self._engine.create(kind, news, limit, preview=request.preview),
            request.properties,
        )
        return pb.CreateResponse(id=resource_id, properties=encode(properties))

    def Update(self, request: pb.UpdateRequest, context: Context) -> pb.UpdateResponse:
        """Change a resource in place."""
        kind = self._kind(request.urn, context)
        news, prior = decode(request.news), decode(request.olds)
        limit = self._limit(kind, "update", request)
        properties = self._try(
            context,
            f"updating {request.urn}",
            lambda: self._engine.update(kind, request.id, news, prior, limit, preview=request.preview),
            request.news,
        )
        return pb.UpdateResponse(properties=encode(properties))

    def Read(self, request: pb.ReadRequest, context: Context) -> pb.ReadResponse:
        """Read a resource, for a refresh or an import."""
        kind = self._kind(request.urn, context)
        prior, inputs = decode(request.properties), decode(request.inputs)
        doing = f"refreshing {request.urn}"
        result = self._try(context, doing, lambda: self._engine.read(kind, request.id, prior, inputs))
        if result is None:
            return pb.ReadResponse()
        resource_id, properties, shown = result
        return pb.ReadResponse(id=resource_id, properties=encode(properties), inputs=encode(shown))

    def Delete(self, request: pb.DeleteRequest, context: Context) -> empty_pb2.Empty:
        """Delete a resource."""
        kind = self._kind(request.urn, context)
        prior = decode(request.properties)
        limit = request.timeout if "delete" in kind.timeouts else 0.0  # ignored in silence, as the bridge does
        self._try(context, f"deleting {request.urn}", lambda: self._engine.delete(kind, request.id, prior, limit))
        return empty_pb2.Empty()

    def Invoke(self, request: pb.InvokeRequest, context: Context) -> pb.InvokeResponse:
        """Return the result of a look-up."""
        result = self._try(
            context, f"invoking {request.tok}", lambda: invoke(self._engine.cloud, request.tok, decode(request.args))
        )
        return invoke_response(result)

    def _limit(self, kind: ResourceType, operation: str, request: pb.CreateRequest | pb.UpdateRequest) -> float:
        """Return the time limit in seconds that the program sets for an operation; 0 for none, or for an ignored one.

        The published provider warns of a limit that it ignores, in a preview as well.
        """
        if not request.timeout or operation in kind.timeouts:
            return request.timeout
        text = f"Resource does not support customTimeouts, ignoring: {operation}={go_duration(request.timeout)}"
        self.log(request.urn, text, "WARNING")
        return 0.0

    def _kind(self, urn: str, context: Context) -> ResourceType:
        token = urn.split("::")[2].rsplit("$", 1)[-1]
        kind = TYPES.get(token)
        if kind is None:
            refuse(
                context,
                f"The stand-in provider has no resource type {token}, so this program cannot run on localcloud. "
                f"It has: {', '.join(sorted(TYPES))}. Use one of these, or run with PROVIDER=real.",
            )
        return kind

    def _try(self, context: Context, operation: str, work: Callable[[], _Answer], inputs: object = None) -> _Answer:
        try:
            return work()
        except PartlyDoneError as error:
            text = f"{operation}: {one_error(str(error))}{error.advice}"
            detail = pb.ErrorResourceInitFailed(id=error.id, properties=encode(error.properties), reasons=[text])
            if inputs is not None:
                detail.inputs.CopyFrom(inputs)  # type: ignore[arg-type]
            self._diagnose(operation, error)
            refuse(context, text, detail)
        except PlanError as error:
            self._diagnose(operation, error)
            refuse(context, f"diffing {operation.partition(' ')[2]}: {one_error(str(error))}")
        except ExistsError as error:
            self._diagnose(operation, error)
            refuse(context, one_error(str(error)) + adoption_advice(operation))
        except ProviderError as error:
            self._diagnose(operation, error)
            prefix = "" if not operation or operation.startswith("creating ") else f"{operation}: "
            refuse(context, f"{prefix}{one_error(str(error))}{error.advice}")

    def _diagnose(self, operation: str, error: ProviderError) -> None:
        """Log an error of a resource as the published provider's own log line, which the engine shows beside it."""
        urn = operation.partition(" ")[2]
        if urn.startswith("urn:"):
            self.log(urn, f"{_LOG_LINE}{error}: provider=google-beta@{sdk_version(self.sdk)}")


def adoption_advice(operation: str) -> str:
    """Return the advice for the user about a resource that exists already.

    Args:
        operation: The operation that failed, with the resource's URN.
    """
    stack = operation.partition("urn:pulumi:")[2].partition("::")[0]
    return (
        "It exists, and is not in the state of this stack. If an earlier run of this stack created it (the run was "
        f"killed, or a response was lost), adopt it: `.venv/bin/bezel local recover {shell_word(stack)} --adopt`. If "
        "it has "
        "another owner, give this one another name.\n"
    )
