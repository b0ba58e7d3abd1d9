"""Service `pulumirpc.LanguageRuntime` for a Python project: runs programs and plugins for the engine.

Plugins come from PATH or from the project file. SDKs of packages are written by `sdks`; programs for Node are run by
`node`.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2, json_format
from pulumi.runtime.proto import language_pb2 as pb
from pulumi.runtime.proto import language_pb2_grpc, plugin_pb2

from bezel_pulumi_offline.language_host import projects
from bezel_pulumi_offline.language_host.children import Children

BAIL = 32  # exit code of the SDK's `-exec`: the error is already on the user's screen
EXEC = "pulumi-language-python-exec"


class Host(language_pb2_grpc.LanguageRuntimeServicer):
    """One engine run's language host. `engine` is the engine's address, `children` starts and ends its processes."""

    language = "python"

    def __init__(self, *, engine: str, children: Children) -> None:
        self._engine = engine
        self._children = children

    def Handshake(self, request: Any, _context: grpc.ServicerContext) -> Any:
        """Store the engine's address."""
        self._engine = request.engine_address or self._engine
        return pb.LanguageHandshakeResponse()

    def GetRequiredPackages(self, _request: Any, _context: grpc.ServicerContext) -> Any:
        """Nothing to install in advance."""
        return pb.GetRequiredPackagesResponse()

    def GetPluginInfo(self, _request: Any, _context: grpc.ServicerContext) -> Any:
        """The version of the SDK beside which this host runs."""
        return plugin_pb2.PluginInfo(version=projects.installed_version(Path(sys.executable).parent.parent, "pulumi"))

    def About(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Path and version of the project's interpreter."""
        python, _ = self._python(request.info, context)
        return pb.AboutResponse(executable=python, version=projects.version(python))

    def GetProgramDependencies(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The distributions of the project's virtual environment."""
        venv = self._venv(request.info, context)
        distributions = projects.dependencies(venv, transitive=request.transitiveDependencies)
        return pb.GetProgramDependenciesResponse(
            dependencies=[pb.DependencyInfo(name=name, version=version) for name, version in distributions]
        )

    def InstallDependencies(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        """`uv sync` in the program's folder."""
        venv = self._venv(request.info, context)
        variables = {"UV_PROJECT_ENVIRONMENT": str(venv)}
        yield from self._install(["uv", "sync"], request.info.program_directory, variables, context)

    def _install(
        self, command: Sequence[str], folder: str, variables: Mapping[str, str], context: grpc.ServicerContext
    ) -> Iterator[Any]:
        child = self._children.start(command, cwd=folder, env=os.environ | variables, captured=True)
        context.add_callback(lambda: self._children.stop(child))
        for is_error, data in self._children.streams(child):
            yield (
                pb.InstallDependenciesResponse(stderr=data) if is_error else pb.InstallDependenciesResponse(stdout=data)
            )
        if child.returncode:
            text = f"{Path(command[0]).name} {command[1]} ended with exit code {child.returncode}"
            context.abort(grpc.StatusCode.UNKNOWN, text)

    def Run(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Run the program against the engine's resource monitor, and return how it ended."""
        python, env = self._python(request.info, context)
        command = [python, "-u", _exec_script()]
        arguments = {
            "monitor": request.monitor_address,
            "engine": self._engine,
            "project": request.project,
            "root_directory": request.info.root_directory,
            "stack": request.stack,
            "pwd": request.pwd,
            "dry_run": str(request.dryRun).lower(),
            "parallel": str(request.parallel),
            "organization": request.organization,
        }
        for name, value in arguments.items():
            command += [f"--{name}", value] if value else []
        command += [request.info.entry_point or ".", *request.args]
        return self._run(command, request, env, context)

    def _run(
        self, command: Sequence[str], request: Any, variables: Mapping[str, str], context: grpc.ServicerContext
    ) -> Any:
        """Run a program's command with its configuration; how it ended."""
        env = {
            **variables,
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        }
        child = self._children.start(command, cwd=request.info.program_directory, env=env, captured=False)
        context.add_callback(lambda: self._children.stop(child))
        code = self._children.wait(child)
        if code == BAIL:
            return pb.RunResponse(bail=True)
        if code < 0:
            return pb.RunResponse(error=f"The program was ended by {signal.Signals(-code).name}.")
        return pb.RunResponse(error=f"The program ended with exit code {code}." if code else "")

    def RunPlugin(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        """Run a plugin written in Python: a policy pack (kind `analyzer`) or a program with a folder of its own."""
        python, python_env = self._python(request.info, context)
        requested = dict(item.split("=", 1) for item in request.env)
        env = (
            python_env
            | requested
            | {name: python_env[name] for name in ("PATH", "VIRTUAL_ENV", "PULUMI_RUNTIME_VIRTUALENV")}
        )
        folder = str(Path(request.info.program_directory).absolute())
        # The engine sends only its address to a policy pack; the host adds the pack's folder.
        is_pack = request.kind == "analyzer"
        arguments = ["-m", "pulumi.policy", *request.args, folder] if is_pack else [folder, *request.args]
        child = self._children.start([python, "-u", *arguments], cwd=request.pwd or None, env=env, captured=True)
        context.add_callback(lambda: self._children.stop(child))
        for is_error, data in self._children.streams(child):
            yield pb.RunPluginResponse(stderr=data) if is_error else pb.RunPluginResponse(stdout=data)
        yield pb.RunPluginResponse(exitcode=child.returncode)

    def GeneratePackage(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Write the SDK of a package in the host's language."""
        from bezel_pulumi_offline.language_host import sdks  # late, here and below: no run of a program needs it

        try:
            sdks.generate(
                self._output_of,
                self.language,
                request.schema,
                Path(request.directory),
                loader=request.loader_target,
                local=request.local,
                extra=dict(request.extra_files),
            )
        except sdks.SdkError as error:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        return pb.GeneratePackageResponse()

    def Link(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Enter SDKs into the project's dependencies."""
        from bezel_pulumi_offline.language_host import sdks

        toolchain = str(json_format.MessageToDict(request.info.options).get("toolchain", "pip"))
        paths = [each.path for each in request.packages]
        try:
            text = sdks.link_python(self._output_of, Path(request.info.root_directory), paths, toolchain=toolchain)
        except sdks.SdkError as error:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
            raise
        return pb.LinkResponse(import_instructions=text)

    def _output_of(self, command: Sequence[str], folder: Path) -> tuple[int, str]:
        child = self._children.start(command, cwd=str(folder), env=os.environ, captured=True)
        text = b"".join(data for _, data in self._children.streams(child))
        return child.returncode, text.decode(errors="replace")

    def Cancel(self, _request: Any, _context: grpc.ServicerContext) -> Any:
        """End all running children: the user requested a stop."""
        self._children.stop_all()
        return empty_pb2.Empty()

    def _venv(self, info: Any, context: grpc.ServicerContext) -> Path:
        try:
            return projects.virtual_environment(info.root_directory, json_format.MessageToDict(info.options))
        except projects.ProjectError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise

    def _python(self, info: Any, context: grpc.ServicerContext) -> tuple[str, dict[str, str]]:
        venv = self._venv(info, context)
        try:
            return projects.interpreter(venv), projects.environment(venv)
        except projects.ProjectError as error:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
            raise


def _exec_script() -> str:
    """The SDK's start script, which is beside the engine on PATH."""
    path = shutil.which(EXEC)
    if path is None:
        raise FileNotFoundError(f"{EXEC} is not on PATH: run `make setup`, which puts it beside pulumi")
    return path
