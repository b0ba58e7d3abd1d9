"""Changes of what judges in words: old and new of each value, the file where it has none; and their digest."""

import json
from itertools import permutations

import pytest

from bezel.gitops.judge.changes import JudgeChange, changes_between, digest, keys_changed, lines_of
from bezel.gitops.judge.document import document, text_lines
from bezel.gitops.judge.stack_keys import UNREADABLE, judging_keys, of_new_stack
from bezel.gitops.judge.trees import Entry
from bezel.gitops.judge.values import values_of

PRICES = "service,item,region,model,unit,usd_per_unit,as_of,source,sku\n"
ROW = "cloud-run,gpu nvidia-l4,us-east4,instance-based,gpu-second,{},2026-08,list,\n"


def between(path: str, old: str | None, new: str | None, modes: tuple[str, str] = ("100644", "100644")):
    """The changes between two trees of one file."""
    texts = {f"id-{text}": text.encode() for text in (old, new) if text is not None}
    trees = [
        {} if text is None else {path: Entry(mode, f"id-{text}")} for text, mode in zip((old, new), modes, strict=True)
    ]
    return changes_between(*trees, lambda ids: {name: texts[name] for name in ids})


@pytest.mark.parametrize(
    ("path", "old", "new", "lines"),
    [
        (
            "policies/hardware_cost.prod.json",
            '{"monthly-ceiling": {"limits": {"prod": 1600}}, "always-on": {"limits": {"prod": 2}}}',
            '{"monthly-ceiling": {"limits": {"prod": 16000}}, "always-on": {"limits": {"prod": 2}}}',
            ["monthly-ceiling.limits.prod 1600 → 16000"],
        ),
        (
            "policies/hardware_cost.prod.json",
            '{"a": {"limits": {"prod": ["nvidia-l4"]}}}',
            '{"a": {"limits": {"prod": ["nvidia-l4", "a3"]}, "exempt": ["t"]}}',
            ['a.limits.prod ["nvidia-l4"] → ["nvidia-l4", "a3"]', 'a.exempt (none) → ["t"]'],
        ),
        (
            "packages/catalog/bezel_catalog/data/prices.csv",
            PRICES + ROW.format("0.0001867"),
            PRICES + ROW.format("0.0000001"),
            ["cloud-run gpu nvidia-l4 us-east4 instance-based gpu-second usd_per_unit 0.0001867 → 0.0000001"],
        ),
        (
            "uv.lock",
            '[[package]]\nname = "httpx"\nversion = "0.28"\n[[package]]\nname = "h11"\nversion = "1"\n',
            '[[package]]\nname = "httpx"\nversion = "0.29"\n[[package]]\nname = "h11"\nversion = "1"\n',
            ["package.httpx.version 0.28 → 0.29"],
        ),
        ("Pulumi.yaml", "name: p\nruntime: python\n", "name: p\nruntime: go\nmain: x\n", None),
        (
            "catalog.toml",
            "[model.m]\nweight_bytes = 9\nconfig = '''\n{\"layers\": 4,\n \"x\": null}'''\n",
            "[model.m]\nweight_bytes = 8\nconfig = '''\n{\"layers\": 2,\n \"x\": null}'''\n",
            ["model.m.weight_bytes 9 → 8", "model.m.config.layers 4 → 2"],
        ),
        ("catalog.toml", "[model.m]\nconfig = '{\"a\": 1}'\n", "[model.m]\nconfig = '{a'\n", ["is changed"]),
        ("policies/a.json", '{"a": 1}', '{"a":  1}', ["is changed"]),
        ("policies/a.json", '{"a": 1}', '{"a": ', ["is changed"]),
        ("policies/a.json", None, '{"a": 1}', ["is new"]),
        ("policies/a.json", '{"a": 1}', None, ["is deleted"]),
        ("bezel/engine/project/git.py", "a = 1\n", "a = 2\n", ["is changed"]),
    ],
)
def test_a_change_is_shown_as_old_and_new(path, old, new, lines):
    expected = lines or ["runtime python → go", "main (none) → x"]
    assert lines_of(between(path, old, new)) == [f"{path} {line}" for line in expected]


def test_a_mode_alone_is_a_change_and_a_link_cannot_be_approved():
    assert lines_of(between(".ci/run", "x", "x", ("100755", "100644"))) == [".ci/run mode 100755 → 100644"]
    (link,) = between("policies/a.json", '{"a": 1}', "../docs/a.json", ("100644", "120000"))
    (module,) = between("policies", None, "commit", ("", "160000"))
    assert [bool(change.forbidden) for change in (link, module)] == [True, True]
    assert "is a link" in link.lines()[0]
    assert "is a submodule" in module.lines()[0]


def test_limits_and_prices_come_before_code():
    trees = [
        {},
        {path: Entry("100644", path) for path in ("Makefile", "bezel/a.py", "policies/x/rules.py", "policies/x.json")},
    ]
    changes = changes_between(*trees, lambda _: {})
    assert [change.path for change in changes] == ["policies/x.json", "policies/x/rules.py", "Makefile", "bezel/a.py"]


def test_a_digest_holds_for_one_step_only():
    steps = [between("policies/a.json", *sides) for sides in (("1", "2"), ("2", "1"), ("1", "3"), (None, "2"))]
    steps += [between("policies/b.json", "1", "2"), between("policies/a.json", "1", "2", ("100644", "100755"))]
    assert len({digest(step) for step in steps}) == len(steps)
    assert digest(between("policies/a.json", "1", "2")) == digest(steps[0])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", "[" * 100_000),
        ("a.json", "\ud800"),
        ("a.toml", "a = " + "[" * 5000),
        ("a.yaml", "a: &a [*a, *a]\n? [x]\n: !!python/object:os.system x"),
        ("a.csv", 'a,b\n"'),
        ("a.json", "x" * 4_000_001),
    ],
)
def test_a_file_that_cannot_be_read_has_no_values_and_raises_nothing(name, content):
    values = values_of(name, content.encode("utf-8", "surrogatepass"))
    assert values is None or isinstance(values, dict)


@pytest.mark.slow
def test_a_long_list_takes_no_time():
    values = values_of("a.json", json.dumps({"a": [{"name": "x"}] * 100_000}).encode())
    assert values is not None
    assert len(values) == 100_000


def test_what_a_name_holds_cannot_forge_a_line():
    made = document("x", [JudgeChange("policies/\n\x1b[2J\u202e\udcff", "", "1 2", state="added")])
    assert made["changes"] == ["policies/\\x0a\\x1b[2J\\x202e\\xdcff is new"]
    many = document("x", [JudgeChange(f"a{number}", "", "1", state="added") for number in range(2000)])
    assert len(json.dumps(many)) < 50_000
    assert len(text_lines({"judge": many})) == 22
    assert text_lines({}) == []


STACK = """
config:
  bezel:environment: dev
  bezel:accelerator: nvidia-l4
  bezel:scaling: {max_instances: 2}
  bezel:cost:
    max_hourly_usd: 1.10
    prices: [{item: gpu nvidia-l4, region: us-east4, usd_per_unit: 0.1, as_of: 2026-11, source: invoice}]
"""


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("environment: dev", "environment: prod", ["environment dev → prod"]),
        ("max_hourly_usd: 1.10", "max_hourly_usd: 90", ["cost.max_hourly_usd 1.1 → 90"]),
        ("usd_per_unit: 0.1,", "usd_per_unit: 0.01,", ["cost.prices.0.usd_per_unit 0.1 → 0.01"]),
        ("max_hourly_usd: 1.10\n", "max_lease_usd: 9\n", None),
        ("max_instances: 2", "max_instances: 20", []),
        ("accelerator: nvidia-l4", "accelerator: nvidia-rtx-pro-6000", []),
        ("config:", "# a comment\nconfig:", []),
    ],
)
def test_only_a_stacks_limits_prices_and_environment_judge_it(old, new, named):
    assert old in STACK
    before, after = (judging_keys(text.encode(), "bezel") for text in (STACK, STACK.replace(old, new)))
    lines = lines_of(keys_changed("Pulumi.a.yaml", before, after))
    expected = ["cost.max_hourly_usd 1.1 → (none)", "cost.max_lease_usd (none) → 9"] if named is None else named
    assert lines == [f"Pulumi.a.yaml {line}" for line in expected]


SPELLINGS = ["{}", "bezel:{}", "bezel:config:{}"]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    ("key", "old", "new"), [("environment", "dev", "prod"), ("cost", "{max_hourly_usd: 1}", "{max_hourly_usd: 9}")]
)
def test_each_spelling_of_a_key_judges_as_the_engine_reads_it(spelling, key, old, new):
    plain, one, other = (
        judging_keys(f"config:\n  {name}: {value}\n".encode(), "bezel")
        for name, value in ((f"bezel:{key}", old), (spelling.format(key), old), (spelling.format(key), new))
    )
    assert plain == one
    assert len(lines_of(keys_changed("Pulumi.a.yaml", one, other))) == 1


@pytest.mark.parametrize("project", ["bezel", "chat"])
def test_the_limits_of_a_stack_judge_in_a_project_of_any_name(project: str) -> None:
    text = (
        b"config:\n  bezel:environment: staging\n  bezel:cost: {max_hourly_usd: 9}\n  chat:cost: {max_hourly_usd: 1}\n"
    )
    assert judging_keys(text, project) == {"environment": "staging", "cost.max_hourly_usd": "9"}


@pytest.mark.parametrize(("first", "second"), [*permutations(SPELLINGS, 2)])
def test_two_spellings_of_a_key_cannot_be_read(first, second):
    text = f"config:\n  {first.format('cost')}: {{max_hourly_usd: 1}}\n  {second.format('cost')}: {{}}\n"
    assert [*judging_keys(text.encode(), "bezel")] == [UNREADABLE]
    assert judging_keys(text.encode(), "bezel") != judging_keys(text.replace("1", "9").encode(), "bezel")


@pytest.mark.parametrize(
    "key", ["gcp:environment", "gcp:config:environment", "bezel:config", "other:cost", "configs:cost"]
)
def test_a_key_of_another_name_does_not_judge(key):
    text = f"config:\n  bezel:environment: dev\n  {key}: x\n"
    assert judging_keys(text.encode(), "bezel") == {"environment": "dev"}


LONG = "x" * 5000


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        (f"'{LONG}1'", f"'{LONG}9'", ["…xxxxxxxxxxxxxxxxxxxx1 → …xxxxxxxxxxxxxxxxxxxx9"]),
        (f"'a{LONG}'", f"'b{LONG}'", [f"a{LONG[:78]}… → b{LONG[:78]}…"]),
        (f"'{LONG}'", f"'{LONG} '", ['…xxxxxxxxxxxxxxxxxxxx" → …xxxxxxxxxxxxxxxxxxxx "']),
        ("'a b'", "'a  b'", ['"a b" → "a  b"']),
        ("'a b'", '"a\\nb"', ['"a b" → "a\\nb"']),
        (f"[{'1, ' * 90}1]", f"[{'1, ' * 90}9]", ["…, 1, 1, 1, 1, 1, 1, 1] → …, 1, 1, 1, 1, 1, 1, 9]"]),
        ("'a b'", '"a b"', []),
        (f"'{LONG}'", f'"{LONG}"', []),
    ],
)
def test_a_value_is_compared_whole_and_shown_short(old, new, named):
    text = "config:\n  bezel:cost: {{prices: [{{item: {}}}]}}\n"
    before, after = (judging_keys(text.format(value).encode(), "bezel") for value in (old, new))
    changes = keys_changed("Pulumi.a.yaml", before, after)
    assert lines_of(changes) == [f"Pulumi.a.yaml cost.prices.0.item {line}" for line in named]
    assert len({digest(changes), digest([])}) == 1 + len(named)


def test_limits_in_a_json_text_judge_as_the_program_decodes_them():
    sides = {name: f"config:\n  bezel:cost: {name}\n" for name in ("{max_hourly_usd: 1}", "'{\"max_hourly_usd\": 1}'")}
    plain, decoded = (judging_keys(text.encode(), "bezel") for text in sides.values())
    assert plain == decoded
    raised = judging_keys(b"config:\n  bezel:cost: '{\"max_hourly_usd\":   9}'\n", "bezel")
    assert lines_of(keys_changed("Pulumi.a.yaml", decoded, raised)) == ["Pulumi.a.yaml cost.max_hourly_usd 1 → 9"]
    deep = f"config:\n  bezel:cost: '{'[' * 100_000}'\n"
    assert [*judging_keys(deep.encode(), "bezel")] == [UNREADABLE]


def test_a_new_stack_chooses_its_environment_but_no_price():
    keys = judging_keys(STACK.encode(), "bezel")
    lines = lines_of(keys_changed("Pulumi.a.yaml", of_new_stack(keys), keys))
    assert len(lines) == 5
    assert all(" cost.prices.0." in line for line in lines)
    assert keys_changed("Pulumi.b.yaml", of_new_stack({"environment": "prod"}), {"environment": "prod"}) == []


def test_a_stack_file_that_cannot_be_read_counts_as_changed():
    one, other = judging_keys(b"\xff", "bezel"), judging_keys(b"a: [", "bezel")
    assert one != other != judging_keys(b"", "bezel")
    assert lines_of(keys_changed("Pulumi.a.yaml", judging_keys(b"", "bezel"), one))
