"""The pickles that the plugin of dynamic resources reads, and the projects whose engines start it."""

import base64
import functools
import operator
import os
import pickle
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dill
import pytest
import yaml
from pulumi.dynamic import ResourceProvider
from pulumi.dynamic.dynamic import serialize_provider

from bezel.gitops.project_setup.folder import SetupFolder
from bootstrap.providers.stack_guard import StackGuardProvider
from components.dynamic_plugin.unpickling import ProviderError, load_provider
from components.providers.lease_hours import LeaseAfterChecksProvider
from components.providers.model_files import ModelFilesProvider
from components.providers.scheduled_minimum import ScheduledMinimumProvider
from components.providers.tpu_node import TpuNodeProvider
from components.providers.tpu_request import TpuRequestProvider
from components.providers.traffic_switch import TrafficSwitchProvider
from smoke.benchmark import ShortBenchmarkProvider
from smoke.health import HealthCheckProvider

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "components" / "dynamic_plugin" / "pulumi-resource-pulumi-python"
# As it stands in the states of deployed stacks.
STORED = "gASVPQAAAAAAAACMH2Jvb3RzdHJhcC5wcm92aWRlcnMuc3RhY2tfZ3VhcmSUjBJTdGFja0d1YXJkUHJvdmlkZXKUk5QpgZQu"
PROVIDERS = (
    HealthCheckProvider,
    LeaseAfterChecksProvider,
    ModelFilesProvider,
    ScheduledMinimumProvider,
    ShortBenchmarkProvider,
    StackGuardProvider,
    TpuNodeProvider,
    TpuRequestProvider,
    TrafficSwitchProvider,
)


class WithValues(ResourceProvider):
    """A provider of a program of its own, with values."""

    def __init__(self) -> None:
        super().__init__()
        self.hosts, self.limit, self.labels = ["a"], 3.5, {"team": {"speech"}}


class Runs:
    """What its pickle runs when it is read."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call


class Hides(WithValues):
    """A provider with such a value in it."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


def hostile(mark: str) -> dict[str, bytes]:
    """Pickles that would make the folder `mark`, or hold other code, by the way that they do it."""
    make = Runs(os.mkdir, mark)
    return {
        "a call": pickle.dumps(make),
        "a call, in the oldest protocol": pickle.dumps(make, protocol=0),
        "a call of eval": pickle.dumps(Runs(eval, f"__import__('os').mkdir({mark!r})")),
        "a call of exec": pickle.dumps(Runs(exec, f"import os; os.mkdir({mark!r})")),
        "a process": pickle.dumps(Runs(subprocess.call, ["mkdir", mark])),
        "a partial function": pickle.dumps(functools.partial(os.mkdir, mark)),
        "a method by its name": pickle.dumps(operator.methodcaller("mkdir", mark)),
        "a value of a provider": pickle.dumps(Hides(make)),
        "a member of an instance": pickle.dumps(Hides([{"x": make}])),
        "a call by INST": f"(S'{mark}'\nios\nmkdir\n.".encode(),
        "a call by OBJ": f"(cos\nmkdir\nS'{mark}'\no.".encode(),
        "a global alone": b"cos\nsystem\n.",
        "a global of a module of this program": b"ccomponents.base.dynamic\nengine_address\n)R.",
        "an attribute of a provider": b"\x80\x04\x8c\x0csmoke.health\x8c\x1cHealthCheckProvider.__init__\x93.",
        "a module seen from a provider's": b"\x80\x04\x8c\x0csmoke.health\x8c\x02os\x93.",
        "a class that is no provider": b"cbezel.errors\nUserError\n)R.",
        "a class that dill stores by value": b"cdill._dill\n_create_type\n(c__builtin__\ntype\nS'A'\n(t}tR.",
        "a function that dill stores by value": dill.dumps(lambda: Path(mark).mkdir(), recurse=True),
        "a plain value": pickle.dumps({"a": 1}),
        "a class instead of an instance": pickle.dumps(HealthCheckProvider),
        "no pickle": b"not a pickle",
        "nothing": b"",
        "a module that is not there": b"cno_such_module\nThing\n)R.",
    }


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.__name__)
def test_every_provider_of_the_program_is_read(provider: type[ResourceProvider]) -> None:
    assert type(load_provider(base64.b64decode(serialize_provider(provider())))) is provider


def test_the_pickle_that_states_hold_stays_the_same() -> None:
    assert serialize_provider(StackGuardProvider()) == STORED


def test_every_provider_of_the_program_is_listed() -> None:
    def below(kind: type) -> set[type]:
        return {kind, *(deeper for one in kind.__subclasses__() for deeper in below(one))}

    own = {one for one in below(ResourceProvider) if one.__module__.startswith(("components.", "smoke.", "bootstrap."))}
    assert {one for one in own if not one.__subclasses__()} == set(PROVIDERS)


def test_values_of_a_provider_are_read() -> None:
    assert vars(load_provider(base64.b64decode(serialize_provider(WithValues())))) == vars(WithValues())


@pytest.mark.parametrize("way", hostile(""))
def test_code_in_a_pickle_is_refused_and_never_run(way: str, tmp_path: Path) -> None:
    mark = tmp_path / "made"
    with pytest.raises(ProviderError) as refused:
        load_provider(hostile(str(mark))[way])
    assert not mark.exists()
    assert "Repair: put the provider's class into a module" in str(refused.value)


def test_every_project_with_dynamic_resources_names_the_plugin(tmp_path: Path) -> None:
    made = SetupFolder(tmp_path / "setup", "some-project")
    made.prepare({"bezel:region": "us-east4"})
    for folder in (ROOT, ROOT / "bootstrap", made.path):
        declared = yaml.safe_load((folder / "Pulumi.yaml").read_text())["plugins"]["providers"]
        assert [plugin["name"] for plugin in declared] == ["pulumi-python"]
        script = folder / declared[0]["path"] / PLUGIN.name
        assert script.samefile(PLUGIN)
        assert os.access(script, os.X_OK)


def test_a_missing_environment_is_an_error_with_its_repair(tmp_path: Path) -> None:
    variables = {"PATH": os.environ["PATH"], "PULUMI_RUNTIME_VIRTUALENV": "no/such"}
    ended = subprocess.run([PLUGIN, "x"], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        f"{tmp_path}/no/such has no bin/python, so dynamic resources cannot be deployed: run `uv sync`.\n"
    )
