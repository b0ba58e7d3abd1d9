"""Service `pulumirpc.LanguageRuntime` for a Python project: runs programs and plugins for the engine.

Leaves out packages and code generation (`pulumi install`, `pulumi package`): plugins come from PATH or from the
project file.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
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
        child = self._children.start(
            ["uv", "sync"],
            cwd=request.info.program_directory,
            env=os.environ | {"UV_PROJECT_ENVIRONMENT": str(venv)},
            captured=True,
        )
        context.add_callback(lambda: self._children.stop(child))
        for is_error, data in self._children.streams(child):
            yield (
                pb.InstallDependenciesResponse(stderr=data) if is_error else pb.InstallDependenciesResponse(stdout=data)
            )
        if child.returncode:
            context.abort(grpc.StatusCode.UNKNOWN, f"uv sync ended with exit code {child.returncode}")

    def Run(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Run the program against the engine's resource monitor, and return how it ended."""
        python, env = self._python(request.info, context)
        env["PULUMI_CONFIG"] = json.dumps(dict(request.config))
        env["PULUMI_CONFIG_SECRET_KEYS"] = json.dumps(list(request.configSecretKeys))
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
