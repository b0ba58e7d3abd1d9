"""Entry point of `bezel`: parses arguments, calls one function a subcommand, returns its exit code."""

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bezel.cli.argparser import Parser, above_zero
from bezel.cli.tpu.arguments import add_arguments
from bezel.errors import UserError
from bezel.pulumi_engine.project import Project, ProjectError, find_project

DIRECTORY = ".localcloud"
# Deadline for copying weights: enough for the largest model of the catalogue (58 GiB) at 5 MB/s.
COPY_SECONDS = 6 * 3600.0
LIST_SECONDS = 120.0
STACK_COMMANDS = {
    "up": "deploy a stack, check it, measure it, print what it costs",
    "preview": "what `up` would change",
    "refresh": "take over into the state what changed in the cloud",
    "down": "destroy the stack, then stop the cloud",
    "outputs": "the stack's outputs as JSON",
}
CLOUD_COMMANDS = {
    "start": "start it where it does not run",
    "stop": "stop it; its data stay",
    "status": "whether it runs, and where",
    "env": 'shell lines that point pulumi at it: eval "$(.venv/bin/bezel local env)"',
}
COMPARE = "one model over every accelerator: what fits, what it costs, how fast it may be"
BENCH = "load that is sent to a server, what was seen, and whether it can be believed"
FAULT = "rehearse a failure: what can go wrong in the embedded cloud, put on and taken off"
FAULT_COMMANDS = {
    "list": "every kind of fault with its parameters and their defaults",
    "add": "put a fault on, in place of one of the same kind",
    "show": "what is on",
    "clear": "take one kind off, or everything",
}

CATALOGUE_SECTIONS = ("accelerators", "tpus", "machines", "models", "prices", "vllm", "comparison", "measurements")


# Commands that need no embedded cloud. Each imports late: half a second of imports is another command's.
def _plan(project: Project, options: argparse.Namespace) -> int:
    from bezel.cli.plan import print_plan

    return print_plan(project, options.stack)


def _compare(_: Project, options: argparse.Namespace) -> int:
    from bezel.cli.compare import print_comparison

    return print_comparison(options.model, context=options.context, simulated=options.simulate, as_json=options.json)


def _bench(project: Project, options: argparse.Namespace) -> int:
    from bezel.cli.bench.commands import run_bench

    return run_bench(project, options)


def _recover(project: Project, options: argparse.Namespace) -> int:
    from bezel.pulumi_engine.recover import recover_stack

    return recover_stack(project, options.stack)


def _tpu(project: Project, options: argparse.Namespace) -> int:
    from bezel.cli.tpu.commands import run_tpu

    return run_tpu(project, options)


def _weights(project: Project, options: argparse.Namespace) -> int:
    from bezel.cli.weights import run_weights

    return run_weights(
        project, options.stack, copy=options.action == "copy", origin=options.origin, deadline=options.deadline
    )


COMMANDS: dict[str, Callable[[Project, argparse.Namespace], int]] = {
    "plan": _plan,
    "bench": _bench,
    "compare": _compare,
    "recover": _recover,
    "tpu": _tpu,
    "weights": _weights,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand. Exit code 0: done; 1: it failed, the reason is on standard error; 2: wrong arguments."""
    try:
        try:
            return _run(parse(arguments))
        finally:
            sys.stdout.flush()  # else a full disk, or a closed reader, shows only at the interpreter's exit
    except UserError as error:
        sys.stderr.write(f"bezel: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nbezel: stopped\n")
        return 130
    except OSError as error:
        from bezel.cli import exits

        if isinstance(error, BrokenPipeError) and exits.reader_gone():
            return exits.READER_GONE
        text = exits.told(error)
        if text is None:
            raise
        sys.stderr.write(f"bezel: {text}\n")
        return 1


def _run(options: argparse.Namespace) -> int:
    if options.command == "catalog":
        return _catalog(options)
    if options.command == "bench" and options.action == "worker":
        # A task's machine has the package, but no project.
        from bezel.cli.bench.worker import run_worker

        return run_worker(options.place)
    project = _project(options)
    if options.command in COMMANDS:
        return COMMANDS[options.command](project, options)
    from bezel.cli.local import Local

    local = Local(
        project=project,
        directory=options.dir or project.folder / DIRECTORY,
        server=options.server,
        model=options.model,
        speed=options.speed,
        provider=options.provider,
        deadline=getattr(options, "deadline", None),
    )
    if options.action in STACK_COMMANDS:
        from bezel.pulumi_engine.engine_process import end_with_make

        end_with_make()
        return local.run_stack(options.action, options.stack, options.pulumi)
    if options.action == "token":
        return local.token(options.url)
    if options.action == "recover":
        return local.recover(options.stack, adopt=options.adopt, forget=options.forget)
    if options.action == "fault":
        return local.fault(options.fault, getattr(options, "kind", ""), getattr(options, "parameters", ()))
    return local.run_cloud(options.action)


def _project(options: argparse.Namespace) -> Project:
    """The project around the working directory; benchmarks and comparisons without a stack read none.

    Raises:
        ProjectError: There is none, and the command needs one.
    """
    try:
        return find_project(Path.cwd())
    except ProjectError:
        if options.command in ("bench", "compare") and not getattr(options, "stack", None):
            return Project(Path.cwd())
        raise


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line; end the process with exit code 2 where it is invalid."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = Parser(prog="bezel", description="Gemma 4 on vLLM, on Google Cloud, as a Pulumi program.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    plan = commands.add_parser("plan", help="what a stack deploys, needs and costs, and where each value comes from")
    plan.add_argument("stack")
    compare = commands.add_parser("compare", help=COMPARE, description=COMPARE)
    compare.add_argument(
        "--model", required=True, metavar="NAME", help="a model family or a checkpoint, e.g. gemma-4-12b"
    )
    compare.add_argument("--context", type=int, metavar="TOKENS", help="longest request that must fit (default: 8192)")
    compare.add_argument("--simulate", action="store_true", help="also what the simulated server does under this load")
    compare.add_argument("--json", action="store_true", help="as JSON, each figure with its kind and source")
    recover = commands.add_parser("recover", help="after a kill: find out how the unfinished changes of a stack ended")
    recover.add_argument("stack")
    _add_catalog(commands)
    _add_weights(commands)
    add_arguments(commands)
    bench = commands.add_parser("bench", help=BENCH, description=BENCH)
    if given[:1] == ["bench"]:
        # No other command should pay for loading these options.
        from bezel.cli.bench.commands import add_actions

        add_actions(bench)
    local = commands.add_parser("local", help="the embedded cloud of this clone, and the engine run against it")
    if given[:1] == ["local"]:
        # Nor for making a parser for each of these commands.
        _add_local(local)
    # Split here: argparse cannot place the rest where our options come between the stack and the dashes.
    dashes = given.index("--") if "--" in given else len(given)
    options = parser.read(given[:dashes])
    if given[dashes + 1 :] and not hasattr(options, "pulumi"):
        parser.error(f"nothing is passed on to pulumi here: {shlex.join(given[dashes:])}")
    if getattr(options, "pulumi", ()):
        parser.error(f"what is passed on to pulumi stands after --: {shlex.join(options.pulumi)} stands before it")
    options.pulumi = given[dashes + 1 :]
    return options


def _catalog(options: argparse.Namespace) -> int:
    from bezel.cli.catalog import commands as catalog

    if options.action == "show":
        return catalog.show(options.section)
    if options.action == "check":
        return catalog.check()
    if options.action == "record-options":
        from bezel.cli.catalog.record_options import record_options

        return record_options(options.python, name=options.name, replace=options.replace)
    return catalog.refresh(write=options.write)


def _add_weights(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = commands.add_parser("weights", help="the models in a stack's bucket: listed, or copied there")
    actions = parser.add_subparsers(dest="action", required=True, metavar="COMMAND")
    listed = actions.add_parser("list", help="what lies in the stack's bucket, and whether each model is whole")
    listed.add_argument("stack")
    listed.set_defaults(origin=None, deadline=LIST_SECONDS)
    copied = actions.add_parser("copy", help="bring the stack's model into its bucket; run again, it goes on")
    copied.add_argument("stack")
    copied.add_argument(
        "--from",
        dest="origin",
        metavar="SOURCE",
        help="hf:OWNER/NAME[@REVISION] or gs://BUCKET/PATH (default: the model's id on the Hugging Face hub)",
    )
    copied.add_argument(
        "--deadline",
        type=above_zero,
        default=COPY_SECONDS,
        metavar="SECONDS",
        help="give up after that long (default: 6 hours); what is copied stays",
    )


def _add_catalog(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = commands.add_parser("catalog", help="the facts that plans are made of: machines, models, prices, vLLM")
    actions = parser.add_subparsers(dest="action", required=True, metavar="COMMAND")
    show = actions.add_parser("show", help="each row with its date and source")
    show.add_argument("section", nargs="?", choices=CATALOGUE_SECTIONS)
    actions.add_parser("check", help="whether the data files hold to the rules")
    refresh = actions.add_parser("refresh", help="what the Cloud Billing Catalog says of the prices now")
    refresh.add_argument("--write", action="store_true", help="take it over into the price file")
    record = actions.add_parser("record-options", help="what an installed vLLM takes, for images that hold it")
    record.add_argument("python", metavar="PYTHON", help="interpreter of the environment that vLLM is installed in")
    record.add_argument("--name", metavar="TAG", help="of the recording, as the image's tag (default: its release)")
    record.add_argument("--replace", action="store_true", help="write over a recording of that name")


def _add_local(local: Parser) -> None:
    actions = local.add_subparsers(dest="action", required=True, metavar="COMMAND")
    for name, text in STACK_COMMANDS.items():
        action = _action(actions, name, text)
        action.add_argument("stack")
        action.add_argument(
            "--deadline",
            type=above_zero,
            metavar="SECONDS",
            help="give up waiting for the service, and for its check, after that long (default: 40 minutes, and the "
            "stack's smoke.deadline_seconds)",
        )
        action.add_argument("pulumi", nargs="*", metavar="-- OPTION", help="passed on to pulumi")
    for name, text in CLOUD_COMMANDS.items():
        _action(actions, name, text)
    recover = _action(actions, "recover", "after a kill: unlock a stack, find out how its unfinished changes ended")
    recover.add_argument("stack")
    exists = recover.add_mutually_exclusive_group()
    exists.add_argument("--adopt", action="store_true", help="take in also what exists already, if it is yours")
    exists.add_argument("--forget", action="store_true", help="leave what exists already alone, if it is not yours")
    token = _action(actions, "token", "an identity token for a service's URL, as curl needs it")
    token.add_argument("url")
    fault = actions.add_parser("fault", help=FAULT, description=FAULT)
    faults = fault.add_subparsers(dest="fault", required=True, metavar="COMMAND")
    for name, text in FAULT_COMMANDS.items():
        command = _action(faults, name, text)
        if name == "add":
            command.add_argument("kind", metavar="KIND")
            command.add_argument("parameters", nargs="*", metavar="NAME=VALUE")
        elif name == "clear":
            command.add_argument("kind", nargs="?", default="", metavar="KIND")


def _action(actions: "argparse._SubParsersAction[Parser]", name: str, text: str) -> argparse.ArgumentParser:
    action = actions.add_parser(name, help=text, description=text)
    action.add_argument("--dir", type=Path, help=f"where the cloud keeps its data (default: {DIRECTORY} in the clone)")
    action.add_argument(
        "--server",
        choices=("sim", "vllm"),
        default="sim",
        help="behind a service runs the simulated vLLM, or the vllm found on PATH",
    )
    action.add_argument("--model", type=Path, help="with --server vllm: the folder of the local model to serve")
    action.add_argument(
        "--speed",
        type=above_zero,
        default=60.0,
        help="how many times faster than real the waits for platform and loading pass (default: 60)",
    )
    action.add_argument(
        "--provider",
        choices=("stand-in", "real"),
        default="stand-in",
        help="Pulumi's plugins: the stand-ins of this repository, or the published ones",
    )
    return action
