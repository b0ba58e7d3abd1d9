"""The sticky issue on the forge: one issue that every upkeep command updates, found by its marker and its own author.

A section that is open opens the issue; once all sections are well it is closed. A later finding opens another one: the
discussion of a closed one is over. Leaves out the issue's text (`sections`).
"""

from collections.abc import Mapping

from bezel.forge import Forge, ForgeError, Issue, forge_of
from bezel.gitops.upkeep.sections import MARKER, TITLE, Section, is_well, sections_of, with_section
from bezel_base.errors import NOT_SET, Problem

_ATTEMPTS = 3


def report_to_issue(environ: Mapping[str, str], section: Section) -> str:
    """Put a section into the sticky issue; return its URL, "" if there is none and none is needed.

    Raises:
        ForgeError: The environment names no forge, or the forge refuses.
    """
    forge = forge_of(environ)
    if forge is None:
        consequence = "no forge is named, so there is no issue to update."
        repair = "leave --issue out, or set GITHUB_API_URL, GITHUB_REPOSITORY and GITHUB_TOKEN."
        raise ForgeError(Problem("GITHUB_API_URL", NOT_SET, consequence, repair))
    with forge:
        return update_issue(forge, section)


def update_issue(forge: Forge, section: Section) -> str:
    """Put a section into the sticky issue of a forge, as of `report_to_issue`.

    The forge has no preconditions: after writing, the issue is read again, and written again if another job's update
    crossed this one.
    """
    url = ""
    for _ in range(_ATTEMPTS):
        issues = forge.find_issues(MARKER)
        if not issues:
            if section.is_well:
                return ""
            issues = [forge.create_issue(TITLE, with_section("", section))]
            # Another job may have opened one at the same moment: the older one stays.
            issues = forge.find_issues(MARKER) or issues
        oldest, *others = issues
        url = oldest.url
        if _is_done(forge, oldest, others, section):
            return url
    return url


def _is_done(forge: Forge, oldest: Issue, others: list[Issue], section: Section) -> bool:
    """Bring the oldest issue up to date and close the others; return whether it was so already."""
    body = oldest.body
    for other in others:
        names = {part.name for part in sections_of(body)}
        for part in sections_of(other.body):
            body = body if part.name in names else with_section(body, part)
        forge.close_issue(other.number)
    body = with_section(body, section)
    if is_well(body):
        if body != oldest.body:
            forge.update_issue(oldest.number, body=body)
        forge.close_issue(oldest.number)
        return True
    if body == oldest.body:
        return not others
    forge.update_issue(oldest.number, body=body)
    return False
