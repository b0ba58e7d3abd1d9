"""Service `pulumirpc.LanguageRuntime` for a Node project: runs programs in TypeScript and JavaScript for the engine.

npm's `@pulumi/pulumi` has the program that runs one (`cmd/run`). Leaves out plugins and policy packs written for Node.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import json_format
from pulumi.runtime.proto import language_pb2 as pb
from pulumi.runtime.proto import plugin_pb2

from bezel_pulumi_offline.language_host.runtime import Host

_PACKAGE = "@pulumi/pulumi"


class NodeHost(Host):
    """One engine run's language host of Node programs."""

    language = "nodejs"

    def GetPluginInfo(self, _request: Any, _context: grpc.ServicerContext) -> Any:
        """No version: that of the SDK is each program's own."""
        return plugin_pb2.PluginInfo()

    def About(self, _request: Any, context: grpc.ServicerContext) -> Any:
        """Path and version of Node."""
        node = _find("node", context)
        version = subprocess.run(
            [node, "--version"], capture_output=True, encoding="utf-8", check=True, timeout=30
        ).stdout
        return pb.AboutResponse(executable=node, version=version.strip().removeprefix("v"))

    def GetProgramDependencies(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The packages that the project's package.json names."""
        del context
        folder = Path(request.info.program_directory)
        named = json.loads((folder / "package.json").read_text(encoding="utf-8")).get("dependencies", {})
        listed = [pb.DependencyInfo(name=name, version=version) for name, version in sorted(named.items())]
        return pb.GetProgramDependenciesResponse(dependencies=listed)

    def InstallDependencies(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        """`npm install` in the program's folder."""
        command = [_find("npm", context), "install", "--no-audit", "--no-fund", "--loglevel=error"]
        yield from self._install(command, request.info.program_directory, {}, context)

    def Run(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Run the program against the engine's resource monitor, and return how it ended."""
        options = json_format.MessageToDict(request.info.options)
        folder = Path(request.info.program_directory)
        runner = _runner(folder)
        if runner is None:
            return pb.RunResponse(error=f"{folder} has no node_modules/{_PACKAGE}, which runs it: run `npm install`.")
        arguments = {
            "monitor": request.monitor_address,
            "engine": self._engine,
            "organization": request.organization,
            "project": request.project,
            "root-directory": request.info.root_directory,
            "stack": request.stack,
            "pwd": request.pwd or str(folder),
            "parallel": str(request.parallel) if request.parallel else "",
        }
        command = [_find("node", context), *str(options.get("nodeargs", "")).split(), str(runner)]
        command += [f"--{name}={value}" for name, value in arguments.items() if value]
        command += [*(["--dry-run"] if request.dryRun else []), request.info.entry_point or ".", *request.args]
        is_typed = options.get("typescript", True) is not False
        variables = {"PULUMI_NODEJS_TYPESCRIPT": "true"} if is_typed else {}
        if tsconfig := options.get("tsconfig"):
            variables["PULUMI_NODEJS_TSCONFIG_PATH"] = str(tsconfig)
        return self._run(command, request, os.environ | variables, context)

    def RunPlugin(self, _request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        """Refused: this host runs programs only."""
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "this language host runs no plugins or policy packs for Node")

    def Link(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Enter SDKs into the project's package.json."""
        from bezel_pulumi_offline.language_host import sdks  # late: no run of a program needs it

        try:
            text = sdks.link_node(Path(request.info.root_directory), [each.path for each in request.packages])
        except sdks.SdkError as error:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
            raise
        return pb.LinkResponse(import_instructions=text)


def _runner(folder: Path) -> Path | None:
    """The SDK's program that runs others, from the nearest `node_modules` above a folder."""
    places = (above / "node_modules" / _PACKAGE / "cmd" / "run" for above in (folder, *folder.parents))
    return next((place for place in places if place.is_dir()), None)


def _find(program: str, context: grpc.ServicerContext) -> str:
    path = shutil.which(program)
    if path is None:
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"{program} is not on PATH: install Node 20 or newer.")
        raise FileNotFoundError(program)
    return path
