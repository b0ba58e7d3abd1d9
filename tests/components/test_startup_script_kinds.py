"""Script of a machine: what an edit leaves as it was for that machine replaces no lease, and any other edit does."""

from __future__ import annotations

import copy
import itertools
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from bezel.leases.requests import instance_body, queued_body
from bezel_components.config import startup_script as module
from bezel_components.config.shell_text import without_comments
from bezel_components.config.startup_script import KEY, SCRIPT, kinds_of, script_for, startup_script, with_same_script
from bezel_components.providers.tpu_request import TpuRequestProvider
from tests.components.test_node_metadata import node
from tests.support.leases.fake_lease_api import lease_api_serving
from tests.support.leases.harness import LeaseHarness, body_of, point_at
from tests.support.leases.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Callable

WHOLE = SCRIPT.read_text(encoding="utf-8")
# As every machine got it until November 2026: the file without the marks, which are comments.
EARLIER = "".join(module._lines_for(WHOLE, module.FIRST_KINDS))
ALL_KINDS = [
    {"device": device, "packages": packages, "notice": notice, "collector": collector}
    for device, packages, (notice, collector) in itertools.product(
        ("tpu", "gpu"), ("", "docker"), ((True, False), (False, True))
    )
]
NAMES = "RESTARTS ROOT METADATA SECRETS STORAGE LOGGING RUN CACHE CONTAINER INPUTS REQUEST phase told private"

SAME = {
    "a comment": lambda text: text.replace("\nfinish()", "\n# another comment, that isn't code\nfinish()"),
    "no comments": lambda text: "".join(
        line for line in text.splitlines(True) if not line.lstrip().startswith("#") or line.startswith("#!")
    ),
    "a comment behind code": lambda text: text.replace("  exit 1\n", "  exit 1 # it's over \"now\n"),
    "blank lines": lambda text: text.replace("\n\n", "\n\n\n"),
    "indentation": lambda text: text.replace("\n  exit 1\n", "\n\t\texit 1\n"),
    "trailing blanks": lambda text: text.replace("  exit 1\n", "  exit 1  \n"),
    "aligned comments": lambda text: text.replace("readonly RESTARTS=10        #", "readonly RESTARTS=10 #"),
}
OTHER = {
    "code": lambda text: text.replace("readonly RESTARTS=10 ", "readonly RESTARTS=11 "),
    "a blank in quotes": lambda text: text.replace("answering", "answering ").replace("no output", "no  output"),
    "a hash in quotes": lambda text: text.replace("no output", "no #output"),
    "a line of a quoted text": lambda text: text.replace("import json, sys\n", "import json, sys\n\n"),
    "indentation of a quoted text": lambda text: text.replace("\nname, kind", "\n name, kind").replace(
        "\n    try:", "\n     try:"
    ),
    "a comment of a quoted text": lambda text: text.replace("import json, sys\n", "import json, sys\n# x\n"),
    "a joined line": lambda text: text.replace("|\n    http --header @-", "|\nhttp --header @- --x"),
    "an option": lambda text: text.replace("--shm-size 10gb", "--shm-size 20gb"),
    "the shebang": lambda text: text.replace("#!/bin/bash\n", "#!/bin/sh\n"),
}


def meaning(script: str) -> str:
    """What bash itself reads: every function and the constants, without a run of `main`."""
    program = f"{script.rpartition(chr(10) + 'main')[0]}\ndeclare -f; declare -p {NAMES}"
    bash = shutil.which("bash")
    assert bash
    environment = {"PATH": "/bin:/usr/bin"}
    return subprocess.run([bash, "-c", program], capture_output=True, text=True, env=environment, check=True).stdout


def bodies(script: str, **kinds: Any) -> list[dict[str, Any]]:
    """The request bodies of a machine, of both control planes."""
    notice = ("bezel-m", "m", 14_400) if kinds["notice"] else None
    collector = ("r/c@sha256:0", "text") if kinds["collector"] else None
    machine = {"device": kinds["device"], "packages": kinds["packages"]}
    metadata = node(**machine, end_notice=notice, collector=collector) | {KEY: script}
    common: Any = {"labels": {}, "metadata": metadata, "service_account": "a@b"}
    return [
        queued_body("n", runtime_version="v", accelerator_type="v6e-4", **common),
        instance_body(machine_type="m", source_image="i", **common),
    ]


@pytest.mark.slow
def test_bash_reads_the_same_from_a_script_without_comments() -> None:
    short = without_comments(WHOLE)
    assert len(short) < 0.9 * len(WHOLE)
    assert without_comments(short) == short
    assert meaning(short) == meaning(WHOLE)
    assert meaning(EARLIER) == meaning(without_comments(EARLIER)) != meaning(WHOLE)


@pytest.mark.slow
@pytest.mark.parametrize("edit", SAME)
def test_an_edit_that_changes_no_code_leaves_the_script_of_every_kind(edit: str) -> None:
    edited = SAME[edit](WHOLE)
    assert edited != WHOLE
    assert meaning(edited) == meaning(WHOLE)
    for kinds in ALL_KINDS:
        if edit != "no comments":  # without the marks there are no kinds
            assert script_for(edited, kinds_of(**kinds)) == startup_script(kinds_of(**kinds))
    assert without_comments(edited) == without_comments(WHOLE)


@pytest.mark.slow
@pytest.mark.parametrize("edit", OTHER)
def test_an_edit_of_code_or_of_quoted_text_changes_the_script(edit: str) -> None:
    edited = OTHER[edit](WHOLE)
    assert edited != WHOLE
    assert without_comments(edited) != without_comments(WHOLE)
    if edit != "the shebang":
        assert meaning(edited) != meaning(WHOLE)


@pytest.mark.parametrize(
    "text",
    [
        "cat <<END\n  # text\nEND\n", "cat <<-'END'\n\t# text\n\tEND\n", "case $1 in a) x ;; esac\n", "x=`y # z`\n",
        'echo "${a:-\'  # \'}"\n', "echo 'open\n", 'echo "open\n', "echo $(open\n", "f)\n", "foo\\\n#bar\n",
        "shopt -s extglob\n[[ $a == @(x  y) ]]\n", "x=$(echo 1)# c; echo $x\n", '[[ "a b" =~ (a  b) ]]\n',
        "(( x = 1 # 2\n))\n",
        "cat <(echo 1)#x\n", "a\r\n", "echo $((1 << 2))\n",
    ],
)  # fmt: skip
def test_a_script_that_the_rules_do_not_cover_stays_whole(text: str) -> None:
    assert without_comments(f"  {text}  # c\n") == f"  {text}  # c\n"


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("#!/bin/sh  -e\n\n# c\na  b # c\n\n", "#!/bin/sh  -e\na b\n"),
        ("a='x  # y\n\n  z'  \n", "a='x  # y\n\n  z'\n"),
        ('a="x  $( b  # c\n  d )  # y"\n', 'a="x  $( b  \n  d )  # y"\n'),
        ("a=( # c\n  1\n\n  2 )\n", "a=(1\n2 )\n".replace("(1", "( 1") if False else "a=(\n1\n2 )\n"),
        ("echo ${#a[@]}  $#  a#b 'c'#d\n", "echo ${#a[@]} $# a#b 'c'#d\n"),
        ("a \\\n    b  # c\n", "a \\\n    b\n"),
        ("a $'it\\'s  # b' # c\n", "a $'it\\'s  # b'\n"),
        ('read x <<<"$y"  # c\n', 'read x <<<"$y"\n'),
        ("a\\ \\  b\n", "a\\ \\  b\n"),
        ("(( a  <  b )) # c\n", "(( a < b ))\n"),
    ],
)  # fmt: skip
def test_only_plain_code_is_shortened(text: str, short: str) -> None:
    assert without_comments(text) == short


@pytest.mark.slow
@pytest.mark.parametrize("kinds", ALL_KINDS, ids=lambda kinds: "-".join(map(str, kinds.values())))
def test_an_edit_for_another_kind_of_machine_leaves_the_script(kinds: dict[str, Any]) -> None:
    own_kinds = kinds_of(**kinds)
    edits = {
        "gpu": ("--gpus all", "--gpus 1"), "tpu": ("--privileged", "--privileged --x"),
        "packages": ("docker.io", "docker.ce"), "notice": ("NOTICE_SECONDS=1800", "NOTICE_SECONDS=900"),
        "collector": ("--cpus 1", "--cpus 2"),
    }  # fmt: skip
    for kind, (old, new) in edits.items():
        edited = script_for(WHOLE.replace(old, new), own_kinds)
        assert (edited != startup_script(own_kinds)) is (kind in own_kinds), kind
        assert (old in startup_script(own_kinds)) is (kind in own_kinds)
    bash = shutil.which("bash")
    assert bash
    assert subprocess.run([bash, "-n"], input=startup_script(own_kinds), text=True, check=True).returncode == 0


@pytest.mark.parametrize("text", ["# only gpu\n", "# end gpu\n", "# only gpu\n# end tpu\n", "# only cpu\n# end cpu\n"])
def test_marks_that_form_no_pairs_are_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"startup\.sh"):
        script_for(text, {"gpu"})


@pytest.mark.slow
@pytest.mark.parametrize(
    "kinds",
    [kinds for kinds in ALL_KINDS if not kinds["collector"]],
    ids=lambda kinds: "-".join(map(str, kinds.values())),
)
def test_the_whole_script_of_an_earlier_release_is_that_of_the_kind(kinds: dict[str, Any]) -> None:
    for old, new in zip(bodies(EARLIER, **kinds), bodies(startup_script(kinds_of(**kinds)), **kinds), strict=True):
        before = copy.deepcopy(old)
        assert with_same_script(old, new) == new != old
        assert old == before
        assert TpuRequestProvider().diff("r", {"body": old}, {"body": new, "subnetworks": {}}).replaces == [
            "subnetworks"
        ]
    # No machine of that time had a collector.
    with_collector = kinds | {"collector": True}
    for old, new in zip(
        bodies(EARLIER, **kinds), bodies(startup_script(kinds_of(**with_collector)), **with_collector), strict=True
    ):
        assert with_same_script(old, new) == old
    changed = EARLIER.replace("readonly RESTARTS=10 ", "readonly RESTARTS=9 ")
    for old, new in zip(bodies(changed, **kinds), bodies(startup_script(kinds_of(**kinds)), **kinds), strict=True):
        assert with_same_script(old, new) == old


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["queued_resource", "flex_start_vm"])
@pytest.mark.parametrize(
    ("edit", "replaced"),
    [(lambda text: f"{text}# a comment\n\n", False), (lambda text: f"{text}echo another\n", True)],
    ids=["comment", "code"],
)
def test_a_running_lease_is_replaced_only_for_a_different_script(
    kind: Any, edit: Callable[[str], str], replaced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A running lease is replaced for a script that does something else only."""
    with lease_api_serving() as world:
        point_at(world, monkeypatch)
        stack = Stack(world, kind)
        stack.up(body=with_script(body_of(kind), "#!/bin/bash\necho one\n"))
        (first,) = LeaseHarness(world, kind).remaining()
        body = with_script(body_of(kind), edit("#!/bin/bash\necho one\n"))
        stack.up(body=body)
        # Another setting makes the node wait again, by the hash of a body that the lease was not requested with.
        stack.up(body=body, boot_deadline_seconds=3500)
        stack.up(body=body, boot_deadline_seconds=3400)
        (last,) = LeaseHarness(world, kind).remaining()
        assert (last is not first) is replaced
        stack.down()
        assert LeaseHarness(world, kind).remaining() == []


def with_script(body: dict[str, Any], script: str) -> dict[str, Any]:
    body = copy.deepcopy(body)
    if "tpu" in body:
        body["tpu"]["nodeSpec"][0]["node"]["metadata"][KEY] = script
    else:
        next(item for item in body["metadata"]["items"] if item["key"] == KEY)["value"] = script
    return body
