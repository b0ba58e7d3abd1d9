"""The pickles that the plugin of dynamic resources reads, and the projects whose engines start it."""

import base64
import functools
import operator
import os
import pickle
import pickletools
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dill
import pytest
import yaml
from pulumi.dynamic import ResourceProvider
from pulumi.dynamic.dynamic import serialize_provider

from bezel.gitops.project_setup.folder import SetupFolder
from bezel_bootstrap.providers.stack_guard import StackGuardProvider
from bezel_components.dynamic_plugin.provider_source import defines_provider
from bezel_components.dynamic_plugin.unpickling import ProviderError, load_provider
from bezel_components.providers.lease_hours import LeaseAfterChecksProvider
from bezel_components.providers.model_files import ModelFilesProvider
from bezel_components.providers.scheduled_minimum import ScheduledMinimumProvider
from bezel_components.providers.service_drain import ServiceDrainProvider
from bezel_components.providers.tpu_node import TpuNodeProvider
from bezel_components.providers.tpu_request import TpuRequestProvider
from bezel_components.providers.traffic_switch import TrafficSwitchProvider
from bezel_smoke.address import AddressCheckProvider
from bezel_smoke.benchmark import ShortBenchmarkProvider
from bezel_smoke.door import DoorCheckProvider
from bezel_smoke.health import HealthCheckProvider

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "components" / "bezel_components" / "dynamic_plugin" / "pulumi-resource-pulumi-python"
# As it stands in the states of deployed stacks, and before 0.1.0.
STORED = "gASVQwAAAAAAAACMJWJlemVsX2Jvb3RzdHJhcC5wcm92aWRlcnMuc3RhY2tfZ3VhcmSUjBJTdGFja0d1YXJkUHJvdmlkZXKUk5QpgZQu"
EARLIER = "gASVPQAAAAAAAACMH2Jvb3RzdHJhcC5wcm92aWRlcnMuc3RhY2tfZ3VhcmSUjBJTdGFja0d1YXJkUHJvdmlkZXKUk5QpgZQu"
OWN_CLASS = "class ModelFilesProvider(pulumi.dynamic.ResourceProvider):\n    pass\n"
# Without the folder of this repository, which has modules of these names.
READ = """
import sys
import bezel_components.providers.model_files
from bezel_components.dynamic_plugin.unpickling import load_provider
sys.path.remove(sys.argv[2])
print(type(load_provider(bytes.fromhex(sys.argv[1]))).__module__)
"""
PROVIDERS = (
    AddressCheckProvider,
    DoorCheckProvider,
    HealthCheckProvider,
    LeaseAfterChecksProvider,
    ModelFilesProvider,
    ScheduledMinimumProvider,
    ServiceDrainProvider,
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


def pickle_of(module: str, name: str) -> bytes:
    """An instance of a class by its module and name, as the SDK writes it."""
    texts = b"".join(b"X" + len(one).to_bytes(4, "little") + one for one in (module.encode(), name.encode()))
    return b"\x80\x04" + texts + b"\x93)\x81."


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.__name__)
def test_every_provider_of_the_program_is_read(provider: type[ResourceProvider]) -> None:
    assert type(load_provider(base64.b64decode(serialize_provider(provider())))) is provider


def test_the_pickle_that_states_hold_stays_the_same() -> None:
    # But for the number of the protocol: Pulumi writes Python's default one, which is another from 3.14 on.
    written, stored = (base64.b64decode(text) for text in (serialize_provider(StackGuardProvider()), STORED))
    assert written[2:] == stored[2:]
    assert (written[:1], written[1]) == (pickle.PROTO, pickle.DEFAULT_PROTOCOL)
    assert type(load_provider(stored)) is StackGuardProvider


def test_a_provider_is_read_by_the_name_that_states_before_0_1_0_have() -> None:
    assert type(load_provider(base64.b64decode(EARLIER))) is StackGuardProvider


@pytest.mark.slow
@pytest.mark.parametrize("has_class", [False, True])
def test_a_folder_of_the_program_by_an_earlier_name_hides_no_provider(tmp_path: Path, has_class: bool) -> None:
    folder = tmp_path / "components" / "providers"
    folder.mkdir(parents=True)
    (folder / "model_files.py").write_text(f"import pulumi.dynamic\n{OWN_CLASS if has_class else ''}")
    (tmp_path / "read.py").write_text(READ)
    pickles = pickle_of("components.providers.model_files", "ModelFilesProvider").hex()
    command = [sys.executable, "read.py", pickles, str(ROOT)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    module = "components.providers.model_files" if has_class else "bezel_components.providers.model_files"
    assert (ended.stdout, ended.stderr) == (f"{module}\n", "")


# In place of a module that the plugin imports.
SLOW_MODULE = "import time\nprint('begun', flush=True)\ntime.sleep(60)\n"


@pytest.mark.slow
@pytest.mark.parametrize(("module", "code"), [("dill", -signal.SIGINT), ("none", 0)])
def test_an_interrupt_ends_the_plugin_without_a_word_at_any_time(tmp_path: Path, module: str, code: int) -> None:
    (tmp_path / f"{module}.py").write_text(SLOW_MODULE)
    pipe = subprocess.PIPE
    command = [sys.executable, "-u", "-m", "bezel_components.dynamic_plugin", "127.0.0.1:1"]
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env={"PYTHONPATH": str(tmp_path)}) as plugin:
        assert plugin.stdout is not None
        assert plugin.stdout.readline().strip().isdecimal() is (module == "none"), "its port, once it serves"
        plugin.send_signal(signal.SIGINT)
        assert plugin.communicate(timeout=60) == ("", "")
    assert plugin.returncode == code


def test_every_provider_of_the_program_is_listed() -> None:
    def below(kind: type) -> set[type]:
        return {kind, *(deeper for one in kind.__subclasses__() for deeper in below(one))}

    listed = {
        one
        for one in below(ResourceProvider)
        if one.__module__.startswith(("bezel_components.", "bezel_smoke.", "bezel_bootstrap."))
    }
    # Other tests make providers of their own of these.
    assert {one for one in listed if listed.isdisjoint(one.__subclasses__())} == set(PROVIDERS)


def test_values_of_a_provider_are_read() -> None:
    assert vars(load_provider(base64.b64decode(serialize_provider(WithValues())))) == vars(WithValues())


@pytest.mark.parametrize("way", hostile(""))
def test_code_in_a_pickle_is_refused_and_never_run(way: str, tmp_path: Path) -> None:
    mark = tmp_path / "made"
    with pytest.raises(ProviderError) as refused:
        load_provider(hostile(str(mark))[way])
    assert not mark.exists()
    assert "Repair: put the provider's class into a module" in str(refused.value)


MODULES = {
    "no class": "",
    "a class of another base": "class Thing(dict): ...",
    "a class without a base": "class Thing: ...",
    "a class within another": "from pulumi.dynamic import ResourceProvider as R\nclass A:\n class Thing(R): ...",
    "a class of a function": "from pulumi.dynamic import *\ndef f():\n class Thing(ResourceProvider): ...",
    "a class by another name": "from pulumi.dynamic import ResourceProvider\nclass Other(ResourceProvider): ...",
    "a class of elsewhere": "from bezel_smoke.health import HealthCheckProvider as Thing",
    "a namesake of the base": "class ResourceProvider: ...\nclass Thing(ResourceProvider): ...",
    "a base of itself": "class Thing(Thing): ...",
    "a base that is a call": "from pulumi.dynamic import ResourceProvider\nclass Thing(print('x')): ...",
    "no Python": "class Thing(:",
}


def written_module(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
    """The name of a module with this text, and the folder that it, or the package above it, makes when it runs."""
    name, mark = f"written_{abs(hash(text))}", folder / "ran"
    (folder / name).mkdir()
    for file, more in (("__init__.py", ""), ("module.py", text)):
        (folder / name / file).write_text(f"import pathlib\npathlib.Path({str(mark)!r}).mkdir(exist_ok=True)\n{more}")
    (folder / name / "base.py").write_text("from pulumi.dynamic import ResourceProvider as R\nclass Base(R): ...\n")
    monkeypatch.syspath_prepend(folder)
    return f"{name}.module", mark


@pytest.mark.parametrize("kind", MODULES)
def test_a_module_without_the_provider_is_not_imported(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, mark = written_module(tmp_path, MODULES[kind], monkeypatch)
    for name in ("Thing", "A.Thing", "pathlib", "pathlib.os", ""):
        with pytest.raises(ProviderError):
            load_provider(pickle_of(module, name))
    assert not mark.exists()


@pytest.mark.parametrize("module", ["this", "antigravity", "test.__main__", "pulumi.dynamic.__main__", "idlelib.idle",
    "bootstrap.__main__", "lib2to3.__main__", "..this", "this.", "", "a b", "__main__", "x" * 5000])  # fmt: skip
def test_a_module_that_acts_when_imported_is_refused(module: str) -> None:
    before = set(sys.modules)
    for name in ("Thing", "main", "x.y"):
        with pytest.raises(ProviderError):
            load_provider(pickle_of(module, name))
    assert set(sys.modules) == before


WRITTEN = {
    "from": "from pulumi.dynamic import ResourceProvider\nclass Thing(ResourceProvider): ...",
    "package": "import pulumi\nclass Thing(pulumi.dynamic.ResourceProvider): ...",
    "module": "import pulumi.dynamic as d\nclass Thing(d.ResourceProvider): ...",
    "base of this program": "from bezel_smoke.base import SmokeProvider as Base\nclass Thing(Base): ...",
    "second base": "from pulumi.dynamic import ResourceProvider as R\nclass M: ...\nclass B(R): ...\n"
    "class Thing(M, B): ...",
    "generic": "from typing import *\nfrom pulumi.dynamic import ResourceProvider as R\nT = TypeVar('T')\n"
    "class B(R, Generic[T]): ...\nclass Thing(B[int]): ...",
    "beside": "from .base import Base\nclass Thing(Base): ...",
    "condition": "try:\n from pulumi.dynamic import ResourceProvider\nfinally:\n pass\nif 1:\n"
    " class Thing(ResourceProvider): ...",
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_providers_module_is_imported(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, mark = written_module(tmp_path, WRITTEN[kind], monkeypatch)
    assert type(load_provider(pickle_of(module, "Thing"))).__module__ == module
    assert mark.exists()


def test_the_programs_own_providers_are_found_in_their_source() -> None:
    assert all(defines_provider(one.__module__, one.__name__) for one in PROVIDERS)
    assert defines_provider("bezel_smoke.base", "SmokeProvider")


KIND = pickle_of("bezel_smoke.health", "HealthCheckProvider")[:-3]
THING = KIND + b")\x81"
DELETE = b"}\x8c\x06delete" + KIND[2:] + b"s"
CHANGES = {
    "a class by slots": KIND + b"N" + DELETE + b"\x86b0" + THING + b".",
    "a class by its dictionary": KIND + DELETE + b"b0" + THING + b".",
    "a class by slots, in a value": THING + b"}\x8c\x01x" + KIND + b"N" + DELETE + b"\x86bsb.",
    "slots of an instance": THING + b"N" + DELETE + b"\x86b.",
    "a method of an instance": THING + DELETE + b"b.",
    "the class of an instance": THING + b"}\x8c\x09__class__" + KIND + b"sb.",
    "a special name that no class has": THING + b"}\x8c\x08__call__" + KIND + b"sb.",
    "a property of an instance": THING + b"}\x8c\x08__dict__}sb.",
    "a name that is no text": THING + b"}K\x01K\x01sb.",
    "no values at all": THING + b"K\x01b.",
    "an argument of the constructor": KIND + b"K\x01\x85\x81.",
    "an item of an instance": THING + b"K\x01a.",
    "items of an instance": THING + b"(K\x01e.",
    "an item of a class": KIND + b"K\x01K\x02s.",
    "items of a class": KIND + b"(K\x01K\x02u.",
    "members of a class": KIND + b"(K\x01\x90.",
    "items below nothing": b"\x80\x04(K\x01e.",
    "an item without a list": b"\x80\x04K\x01a.",
}


@pytest.mark.parametrize("way", CHANGES)
def test_a_pickle_sets_nothing_but_values_of_an_instance(way: str) -> None:
    before = dict(vars(HealthCheckProvider))
    with pytest.raises(ProviderError):
        load_provider(CHANGES[way])
    assert dict(vars(HealthCheckProvider)) == before


def test_each_operation_but_those_of_plain_values_is_refused() -> None:
    refused = set[str]()
    for operation in pickletools.opcodes:
        try:
            load_provider(THING + operation.code.encode("latin-1"))
        except ProviderError as error:
            refused |= {operation.name} if "no such operation" in str(error) else set()
    calls = {"REDUCE", "INST", "OBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID"}
    assert calls | {"GLOBAL", "POP", "POP_MARK", "DUP", "NEXT_BUFFER", "READONLY_BUFFER"} <= refused
    assert not refused & {"BUILD", "NEWOBJ", "STACK_GLOBAL", "SETITEMS", "BINFLOAT", "STOP"}


class WithDefaults(ResourceProvider):
    """A provider whose values have defaults in its class."""

    limit: float = 1.0
    serialize_as_secret_always = True


@pytest.mark.parametrize("value", [None, True, False, 0, 255, 256, 65536, -1, 1 << 40, 1 << 4000, 0.5, "", "ü" * 300,
    "x" * 70_000, b"", b"x" * 300, bytearray(b"x"), (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], [1], [1, 2], set(),
    {1, 2}, frozenset({1}), {}, {"a": 1}, {"a": {"b": [1, (2, {3})]}}, WithDefaults])  # fmt: skip
def test_every_plain_value_of_a_provider_is_read(value: object) -> None:
    provider = WithDefaults()
    vars(provider).update({"limit": value, "other": value, "serialize_as_secret_always": False})
    for protocol in (5,) if isinstance(value, bytearray) else (4, 5):  # the one before writes a call for it
        assert vars(load_provider(dill.dumps(provider, protocol=protocol, recurse=True))) == vars(provider)


def test_every_project_with_dynamic_resources_names_the_plugin(tmp_path: Path) -> None:
    made = SetupFolder(tmp_path / "setup", "some-project")
    made.prepare({"bezel:region": "us-east4"})
    for folder in (ROOT, ROOT / "bootstrap" / "bezel_bootstrap", made.path):
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
