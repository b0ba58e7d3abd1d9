"""Container image of a stack, and the recorded options that its vLLM accepts.

Owns reading the release from an image's tag, and refusing an image without recorded options: its arguments could not be
checked. Leaves the recording to `bezel catalog record-release` and a tag's digest to components.
"""

from __future__ import annotations

import re

from bezel.planner.base.deployment import ImagePlan
from bezel.planner.base.problems import setting
from bezel.planner.base.settings import Image, Settings
from bezel_base.errors import Problem
from bezel_base.text.shell import shell_word

COMMAND = "bezel catalog record-release"
_RELEASE = re.compile(r"\d+\.\d+\.\d+(?:\.?(?:rc|post)\d+)?")
_OF_TAG = re.compile(rf"v?({_RELEASE.pattern})(?:[-_.].+)?")
# Tags that move to another image, and builds between releases.
_MOVING = re.compile(r"latest|nightly|main|dev", re.IGNORECASE)
_BUILD = re.compile(r"(?:.*[-_.])?(?:latest|nightly|main|dev)(?:[-_.].*)?", re.IGNORECASE)
_FORMS = {
    "registry": (re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?"), "a host alone, e.g. quay.io"),
    # A whole name has at most 255 characters, and the registry's own repository stands in front of this one.
    "repository": (
        re.compile(r"(?=.{1,150}\Z)[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"),
        "a path without host and tag, e.g. vllm/vllm-tpu",
    ),
    "tag": (re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"), "a tag, e.g. v0.32.0"),
    "digest": (re.compile(r"sha256:[0-9a-f]{64}"), "sha256: and 64 hexadecimal digits"),
    "options": (re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"), "the name of a recording, e.g. 0.32.0"),
}


def is_own(image: Image) -> bool:
    """Whether an image is not vLLM's own, and may hold further packages and files."""
    return bool(image.registry or image.repository)


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
        return "image.tag", _release(chosen.tag)
    return "vllm_version", settings.vllm_version


def unrecorded_image(key: str, name: str, recordings: tuple[str, ...], near: str | None) -> Problem:
    """The problem of an image without recorded options."""
    meant = f"did you mean {near}? Otherwise " if near and key != "image.tag" else ""
    named = "" if _RELEASE.fullmatch(name) else f" --name {shell_word(name)}"
    return Problem(
        setting(key),
        name,
        "the options of this vLLM are not recorded, so no argument of the image could be checked.",
        f"{meant}install that vLLM and record its options, `{COMMAND} PYTHON{named}` (PYTHON: its interpreter), or "
        f"name recorded options that it supports, {setting('image.options')}: {' or '.join(recordings)}.",
    )


def check_image(settings: Settings) -> list[Problem]:
    """Check the image's settings, each by itself and together."""
    problems = [
        Problem(setting(f"image.{name}"), value, "it is not a valid part of an image's name.", f"write {example}.")
        for name, (form, example) in _FORMS.items()
        if (value := getattr(settings.image, name)) is not None and not form.fullmatch(value)
    ]
    return problems or [problem for problem in (_moving(settings), _contradiction(settings)) if problem]


def _moving(settings: Settings) -> Problem | None:
    tag = settings.image.tag or settings.vllm_version
    if settings.image.digest or not _MOVING.fullmatch(tag):
        return None
    return Problem(
        setting("image.tag" if settings.image.tag else "vllm_version"),
        tag,
        "it will name another build, whose options may differ from the recorded ones.",
        f"add the digest of the build, {setting('image.digest')}, or write a tag that does not move.",
    )


def _contradiction(settings: Settings) -> Problem | None:
    """Refuse settings that name different releases, and a build between releases that is declared a release."""
    tag, version = settings.image.tag, settings.vllm_version
    _, recorded = recording_of(settings)
    if version not in (recorded, Settings.model_fields["vllm_version"].default):
        consequence = f"{setting('image')} names {recorded}: one of the two has no effect."
        return Problem(setting("vllm_version"), version, consequence, "remove it, or remove the other.")
    if not tag or not _RELEASE.fullmatch(recorded):
        return None
    release = _release(tag)
    if _RELEASE.fullmatch(release) and release != recorded:
        consequence, repair = f"the tag {tag} names {release}, whose vLLM has other options.", "remove it."
    elif _BUILD.fullmatch(tag):
        consequence = f"the tag {tag} names a build between releases, which may have other options."
        repair = f"record its own: `{COMMAND} PYTHON --name {tag}`, and remove this."
    else:
        return None
    return Problem(setting("image.options"), recorded, consequence, repair)


def _release(tag: str) -> str:
    """The release that a tag names, else the tag itself."""
    match = _OF_TAG.fullmatch(tag)
    return match[1] if match else tag
