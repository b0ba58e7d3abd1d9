"""Container image of a stack, and the recorded options that its vLLM accepts.

Owns reading the release from an image's tag, and refusing an image without recorded options: its arguments could not be
checked. Leaves the recording to `bezel catalog record-options` and a tag's digest to components.
"""

from __future__ import annotations

import re

from bezel.errors import Problem, shown
from bezel.planner.base.deployment import ImagePlan
from bezel.planner.base.problems import setting
from bezel.planner.base.settings import Settings

COMMAND = "bezel catalog record-options"
_RELEASE = re.compile(r"\d+\.\d+\.\d+(?:\.?(?:rc|post)\d+)?")
_OF_TAG = re.compile(rf"v?({_RELEASE.pattern})(?:[-_.].+)?")
# Tags that move to another image, and builds between releases.
_MOVING = re.compile(r"latest|nightly|main|dev", re.IGNORECASE)
_BUILD = re.compile(r"(?:.*[-_.])?(?:latest|nightly|main|dev)(?:[-_.].*)?", re.IGNORECASE)
_FORMS = {
    "registry": (re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?"), "a host alone, e.g. quay.io"),
    "repository": (re.compile(r"[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"), "a path without host and tag, e.g. vllm/vllm-tpu"),
    "tag": (re.compile(r"\w[\w.-]{0,127}"), "a tag, e.g. v0.32.0"),
    "digest": (re.compile(r"sha256:[0-9a-f]{64}"), "sha256: and 64 hexadecimal digits"),
    "options": (re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"), "the name of a recording, e.g. 0.32.0"),
}


def image_plan(settings: Settings, registry: str, repository: str) -> ImagePlan:
    """The image, with the release's own for each part that is not set."""
    chosen = settings.image
    release = _RELEASE.fullmatch(settings.vllm_version)
    return ImagePlan(
        chosen.registry or registry,
        chosen.repository or repository,
        chosen.tag or f"{'v' if release else ''}{settings.vllm_version}",
        chosen.digest or "",
    )


def recording_of(settings: Settings) -> tuple[str, str]:
    """(the setting that determines it, the name of the recorded options that the image accepts)."""
    chosen = settings.image
    if chosen.options:
        return "image.options", chosen.options
    if chosen.tag:
        return "image.tag", _named(chosen.tag)
    return "vllm_version", settings.vllm_version


def unrecorded(key: str, name: str, known: tuple[str, ...], near: str | None) -> Problem:
    """The problem of an image without recorded options."""
    meant = f"did you mean {near}? Otherwise " if near and key != "image.tag" else ""
    named = "" if _RELEASE.fullmatch(name) else f" --name {shown(name)}"
    return Problem(
        setting(key),
        shown(name),
        "the options of this vLLM are not recorded, so no argument of the image could be checked.",
        f"{meant}install that vLLM, record what it takes, `{COMMAND} PYTHON{named}` (PYTHON: its interpreter), or name "
        f"recorded options that it takes, {setting('image.options')}: {' or '.join(known)}.",
    )


def check_image(settings: Settings) -> list[Problem]:
    """Check the image's settings, each by itself and together."""
    chosen = settings.image
    problems = [
        Problem(setting(f"image.{name}"), shown(value), "no image is named so.", f"write {example}.")
        for name, (form, example) in _FORMS.items()
        if (value := getattr(chosen, name)) is not None and not form.fullmatch(value)
    ]
    if problems:
        return problems
    return [*_moved(settings), *_contradictions(settings)]


def _moved(settings: Settings) -> list[Problem]:
    tag, digest = settings.image.tag or settings.vllm_version, settings.image.digest
    if digest or not _MOVING.fullmatch(tag):
        return []
    return [
        Problem(
            setting("image.tag" if settings.image.tag else "vllm_version"),
            tag,
            "it names another build tomorrow, which may take other options than those that were recorded.",
            f"write the digest of the build beside it, {setting('image.digest')}, or a tag that stays.",
        )
    ]


def _contradictions(settings: Settings) -> list[Problem]:
    """Refuse settings that name different releases, and a build between releases that is declared a release."""
    chosen, version = settings.image, settings.vllm_version
    _, recorded = recording_of(settings)
    named = _named(chosen.tag) if chosen.tag else None
    default = Settings.model_fields["vllm_version"].default
    if version not in (recorded, default):
        return [
            Problem(
                setting("vllm_version"),
                shown(version),
                f"{setting('image')} says {recorded}: one of the two has no effect.",
                "remove it, or remove the other.",
            )
        ]
    if named is None or not _RELEASE.fullmatch(recorded):
        return []
    if _RELEASE.fullmatch(named) and named != recorded:
        return [
            Problem(
                setting("image.options"),
                recorded,
                f"the tag {chosen.tag} names {named}, whose vLLM takes other options.",
                "remove it.",
            )
        ]
    if chosen.tag and _BUILD.fullmatch(chosen.tag):
        return [
            Problem(
                setting("image.options"),
                recorded,
                f"the tag {chosen.tag} is of a build between releases, which may take other options.",
                f"record its own: `{COMMAND} PYTHON --name {chosen.tag}`, and remove this.",
            )
        ]
    return []


def _named(tag: str) -> str:
    """The release that a tag names, else the tag itself."""
    found = _OF_TAG.fullmatch(tag)
    return found[1] if found else tag
