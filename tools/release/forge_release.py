"""Releases of a repository on its forge: published whole or left as a draft, by the API that GitHub and Gitea share.

A release is a draft until every file is there. A draft that an ended run left is removed; a published release stays:
files of platforms are added to it, and no file of it is changed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import httpx

from bezel.forge.errors import response_error, unreachable
from bezel.forge.transport import Transport
from bezel.rest.transport import new_client
from bezel_base.errors import Problem, UserError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bezel.forge import Facts

_NEEDS = "contents: write"
_UPLOAD_SECONDS = 300.0


class ReleasesOfForge:
    """The releases of one repository.

    Each method raises ForgeError where the forge refuses or does not answer.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._transport = Transport(facts)
        self._client = new_client(_UPLOAD_SECONDS)
        self._path = f"/repos/{facts.repository}/releases"

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()
        self._client.close()

    def all(self) -> list[dict[str, Any]]:
        """Every release, drafts included, the newest first."""
        return list(self._transport.pages(self._path, needs="contents: read"))

    def refuse_published(self, tag: str) -> None:
        """End with an error if a release of the tag is published.

        Raises:
            UserError: It is.
        """
        if any(release["tag_name"] == tag and not release["draft"] for release in self.all()):
            consequence = "People may have installed its files, which a second release would change."
            raise UserError(
                Problem("tag", tag, consequence, "raise the version: tools/release/version.py, and tag that.")
            )

    def download(self, pattern: str, target: Path) -> Path | None:
        """Write the asset of the newest published release whose name matches to a file; None where none has one."""
        for release in self.all():
            for asset in release["assets"]:
                if not release["draft"] and re.fullmatch(pattern, asset["name"]):
                    # GitHub's assets of private repositories are at `url` alone; Gitea has no such key.
                    url = asset.get("url") or asset["browser_download_url"]
                    target.write_bytes(self._send("GET", url).content)
                    return target
        return None

    def publish(self, tag: str, notes: str, files: Sequence[Path]) -> str:
        """Publish a release with its files; return the address of its page."""
        for release in self.all():
            if release["tag_name"] == tag and release["draft"]:
                self._transport.request("DELETE", f"{self._path}/{release['id']}", needs=_NEEDS)
        is_preview = re.fullmatch(r"v[\d.]+", tag) is None
        body = {"tag_name": tag, "name": tag, "body": notes, "draft": True, "prerelease": is_preview}
        draft = self._transport.request("POST", self._path, needs=_NEEDS, body=body)
        for file in files:
            self._upload(draft, file)
        path = f"{self._path}/{draft['id']}"
        published = self._transport.request("PATCH", path, needs=_NEEDS, body={"draft": False, "tag_name": tag})
        return str(published["html_url"])

    def attach(self, tag: str, files: Sequence[Path]) -> list[str]:
        """Add files to the published release of a tag; return the names of those that it did not have.

        Raises:
            UserError: No release of the tag is published.
        """
        release = next((each for each in self.all() if each["tag_name"] == tag and not each["draft"]), None)
        if release is None:
            consequence = "Its files would be of a release that does not exist."
            repair = "publish it first: the job `publish` of the workflow `release`, or -m tools.release."
            raise UserError(Problem("tag", tag, f"No release of it is published. {consequence}", repair))
        attached = {asset["name"] for asset in release["assets"]}
        missing = [file for file in files if file.name not in attached]
        for file in missing:
            self._upload(release, file)
        return [file.name for file in missing]

    def _upload(self, release: dict[str, Any], file: Path) -> None:
        upload_url = str(release["upload_url"]).partition("{")[0]
        self._send("POST", upload_url, name=file.name, content=file.read_bytes())

    def _send(self, method: str, url: str, *, name: str = "", content: bytes | None = None) -> httpx.Response:
        # What GitHub sends of an asset follows from Accept: its description, or its content.
        accepted = "application/octet-stream" if content is None else "application/json"
        headers = {"Authorization": f"token {self._facts.token}", "Accept": accepted}
        if content is not None:
            headers["Content-Type"] = "application/octet-stream"
        query = {"name": name} if name else None
        try:
            response = self._client.request(
                method, url, params=query, headers=headers, content=content, follow_redirects=True
            )
        except httpx.HTTPError as error:
            raise unreachable(method, url, str(error)) from error
        if not response.is_success:
            raise response_error(
                response.status_code, response.content, method=method, url=url, needs=_NEEDS, token=self._facts.token
            )
        return response
