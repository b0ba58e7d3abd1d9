"""The Cloud Run service that a serverless group leads to: the one that it names, or the one of its URL mask. Pure.

A mask is a host and a path in which `<service>` and `<tag>` stand for parts of the request's URL. Source: Google's page
on serverless network endpoint groups, URL masks.
"""

import re

from bezel_localcloud.services.load_balancing.routes import Region

_PART = "[a-z0-9-]{1,63}"


def target(region: Region, host: str, path: str) -> tuple[str, str]:
    """(service, tag) of a request's host and path; ("", "") where the mask does not fit."""
    if region.service or not region.url_mask:
        return region.service, region.tag
    mask_host, slash, mask_path = region.url_mask.partition("/")
    pattern = re.escape(mask_host) if mask_host else "[^/]*"
    pattern += (re.escape(slash + mask_path) + "(?:/.*)?") if slash else "/.*"
    for part in ("service", "tag"):
        pattern = pattern.replace(re.escape(f"<{part}>"), f"(?P<{part}>{_PART})", 1)
    match = re.fullmatch(pattern, host + path)
    parts = match.groupdict() if match else {}
    return parts.get("service", ""), parts.get("tag", region.tag) if match else ""
