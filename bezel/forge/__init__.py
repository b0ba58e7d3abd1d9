"""Client of the forge's REST API: GitHub, Gitea and Forgejo.

Owns the forge's facts from the environment of a run, requests with deadlines, and the objects that a pipeline reads and
writes: comments, runs, issues, branches, pull requests, commit statuses. Leaves out the texts of comments and issues.
"""

from bezel.forge.client import Forge, forge_of
from bezel.forge.environment import Facts, PullRequestEvent, pull_request_of
from bezel.forge.errors import ForgeError
from bezel.forge.objects import Comment, Issue, PullRequest, RunState

__all__ = [
    "Comment",
    "Facts",
    "Forge",
    "ForgeError",
    "Issue",
    "PullRequest",
    "PullRequestEvent",
    "RunState",
    "forge_of",
    "pull_request_of",
]
