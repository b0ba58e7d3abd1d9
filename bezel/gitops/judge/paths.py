"""Paths of a tree that judge its changes. Pure.

A path judges unless it is known to be judged: the program, stack files, documents and tests. So a file that no rule
knows counts as part of the judge: a module that shadows another one, a configuration of git, Python, uv or the engine.
"""

import re

_JUDGED_BY_OTHERS = re.compile(
    r"__main__\.py|(?:docs|tests)/.+"  # the program; texts; tests, which no deploy loads
    # The rest of these folders judges: they are on the path of every process, so a file may stand for another's module.
    r"|(?:components/(?:bezel_components|providers)|services/bezel_services|smoke/bezel_smoke|stacks/bezel_stacks)/(?!(?:.+/)?pyproject\.toml$).+"
    r"|smoke/(?:base|benchmark|health)\.py"
    r"|(?:packages/[^/]+|bootstrap|components|services|smoke|stacks)/(?:(?:tests|docs)/.+|README\.md|LICENSE)"
    r"|policies/(?:README\.md|LICENSE)"  # another folder of it may be a pack
    r"|tools/(?!toolchain/).+"  # scripts for developers; the toolchain installs and starts the engine
    r"|[^/]+\.md|LICENSE|\.pre-commit-config\.yaml"
)
STACK_FILE = re.compile(r"Pulumi\.(?P<stack>[^/]+)\.yaml")
# Outside of the project's folder: the forge's files, and what applies to every folder below it.
_ABOVE = re.compile(r"/(?:\.(?:github|gitea|forgejo|ci)/.+|(?![^/]+\.md$|LICENSE$)[^/]+)")
# Modules, data of the packages, and what the environment is made of. The packs are run from an export of the base.
_LOADED = re.compile(
    r"(?:bezel|bootstrap|packages)/.+|(?!policies/(?:bezel_policies/|[^/]+/__main__\.py$)|tools/)[^/].*\.(?:py|pyc|so|pth)"
    r"|(?:[^/]+/){0,2}[^/]+\.(?:dist|egg)-info/.+"  # entry points that libraries load
)
_ENVIRONMENT = re.compile(r"uv\.(?:lock|toml)|(?:[^/]+/)*pyproject\.toml|requirements[^/]*\.txt|(?i:\.venv)(?:/.+)?")


def is_judge(path: str) -> bool:
    """Whether a path judges changes.

    Args:
        path: Relative to the project's folder; with a leading slash one outside of it, relative to the checkout.
    """
    if path.startswith("/"):
        return bool(_ABOVE.fullmatch(path))
    return not _JUDGED_BY_OTHERS.fullmatch(path) and not STACK_FILE.fullmatch(path)


def is_loaded(path: str) -> bool:
    """Whether the process that judges may load a path: its modules, its data, what its environment is made of."""
    return is_judge(path) and bool(_LOADED.fullmatch(path) or _ENVIRONMENT.fullmatch(path))


def makes_environment(path: str) -> bool:
    """Whether a path says which distributions an environment has, or is a part of the project's own environment."""
    return bool(_ENVIRONMENT.fullmatch(path))
