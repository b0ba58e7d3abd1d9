"""Settings of the forge after a set-up, to be pasted there: variables, environments, branch protection. Pure.

Owns the text. The names of the variables are those that the workflows read.
"""

from collections.abc import Mapping

from bezel.engine.project.pipeline_file import PROTECTED, Pipeline
from bezel.foundation.settings import Settings
from bezel.gitops.project_setup.folder import SetupFolder
from bezel_base.text.shell import shell_word

VARIABLES = {
    "GOOGLE_PROJECT": "project",
    "PULUMI_BACKEND_URL": "backend_url",
    "PULUMI_SECRETS_PROVIDER": "secrets_provider",
    "BEZEL_IDENTITY_PROVIDER": "identity_provider",
    "BEZEL_PREVIEW_ACCOUNT": "preview_account",
    "BEZEL_DEPLOY_ACCOUNT": "deploy_account",
}
"""Variable of the forge -> output of the foundation."""
_PASSPHRASE = "passphrase"  # noqa: S105 - the name of a secrets provider


def variables(outputs: Mapping[str, str], *, has_key: bool) -> dict[str, str]:
    """The values of the forge's variables."""
    values = {name: outputs[output] for name, output in VARIABLES.items()}
    return values if has_key else {**values, "PULUMI_SECRETS_PROVIDER": _PASSPHRASE}


def text(
    outputs: Mapping[str, str],
    settings: Settings,
    folder: SetupFolder,
    *,
    has_key: bool,
    forge_url: str = "",
    pipeline: Pipeline | None = None,
) -> str:
    """The whole text, for a terminal; `pipeline` names the stacks and the protected environments, if it is known."""
    values = variables(outputs, has_key=has_key)
    write = _github if settings.forge == "github" else _gitea
    approved = _approved_environments(settings, pipeline)
    parts = [write(values, settings, approved, forge_url.rstrip("/"), folder, has_key=has_key)]
    provider, backend = values["PULUMI_SECRETS_PROVIDER"], values["PULUMI_BACKEND_URL"]
    stacks = [*pipeline.stacks] if pipeline is not None and pipeline.stacks else ["STACK"]
    lines = (
        "4. Stacks: make each one in the bucket, and commit what that writes into its file",
        "",
        f"    export PULUMI_BACKEND_URL={shell_word(backend)}",
        *(f"    pulumi stack init {shell_word(stack)} --secrets-provider={shell_word(provider)}" for stack in stacks),
    )
    parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _github(
    values: Mapping[str, str], settings: Settings, approved: str, forge_url: str, folder: SetupFolder, *, has_key: bool
) -> str:
    repository = settings.repository
    base = f"{forge_url or 'https://github.com'}/{repository}/settings"
    lines = [f"1. Variables of the repository ({base}/variables/actions), or run", ""]
    lines += [
        f"    gh variable set {shell_word(name)} --repo {shell_word(repository)} --body {shell_word(value)}"
        for name, value in values.items()
    ]
    if not has_key:
        secret = (
            f"gh secret set PULUMI_CONFIG_PASSPHRASE --repo {shell_word(repository)} < {shell_word(folder.passphrase)}"
        )
        lines += [
            "",
            "   Cloud KMS cannot be reached by the engine here, so a passphrase encrypts secrets:",
            f"    {secret}",
        ]
    lines += ["", f"2. Environments ({base}/environments), or run", ""]
    for name in settings.environments:
        path = f"repos/{repository}/environments/{name}"
        lines.append(f"    gh api --method PUT {shell_word(path)}{_ONLY_PROTECTED}")
    lines += [
        "",
        f"   Add required reviewers to {approved}, and to nothing else: they approve its deployments.",
        "",
        f"3. Protection of the branch {settings.main_branch} ({base}/branches)",
        "",
        *_PROTECTION,
        *_pinning_lines(settings),
    ]
    return "\n".join(lines) + "\n"


_ONLY_PROTECTED = (
    " -F 'deployment_branch_policy[protected_branches]=true'"
    " -F 'deployment_branch_policy[custom_branch_policies]=false'"
)
_PROTECTION = (
    "   - require a pull request with the approval of a code owner (a file CODEOWNERS): a job's token may approve, too",
    "   - require the checks of preview.yml and check.yml to pass, on a branch that is up to date",
    "   - refuse force pushes and deletion, for administrators too",
    "   - name the owners of packs, limits, prices, bezel and workflows: .github/CODEOWNERS.example has the paths.",
    "   - review workflows: a branch's runs as the branch wrote it, and a merged one as it was merged",
)
OPTIONAL = "BEZEL_JUDGE"
"""Variable of the forge that an owner may set: the commit whose code judges deploys."""


def _pinning_lines(settings: Settings) -> list[str]:
    """What holds a deploy's judge and its steps, whatever is merged."""
    now = ", ".join(settings.deploy_workflows) or "any workflow of the main branch may deploy"
    return [
        "",
        f"   To hold the judge of deploys, set the variable {OPTIONAL} to a commit; else that before a merge judges.",
        f"   To hold the steps of deploys (now: {now}), move them to a reusable workflow, and let it alone deploy:",
        "    bezel init --deploy-workflow acme/pipelines/.github/workflows/deploy.yml@COMMIT ...",
    ]


def _gitea(
    values: Mapping[str, str], settings: Settings, approved: str, forge_url: str, folder: SetupFolder, *, has_key: bool
) -> str:
    base = f"{forge_url or 'https://YOUR-GITEA'}/{settings.repository}/settings"
    lines = [f"1. Variables of the repository ({base}/actions/variables)", ""]
    lines += [f"    {name} = {value}" for name, value in values.items()]
    if not has_key:
        lines += [
            "",
            "   Cloud KMS cannot be reached by the engine here, so a passphrase encrypts secrets.",
            f"   Make the content of this file the secret PULUMI_CONFIG_PASSPHRASE ({base}/actions/secrets):",
            f"    {folder.passphrase}",
        ]
    lines += [
        "",
        "2. Environments: Gitea has none. A job's token has to name one in its claim `environment`.",
        f"   The approval of {approved} is that of the pull request.",
        "",
        f"3. Protection of the branch {settings.main_branch} ({base}/branches)",
        "",
        *_PROTECTION,
    ]
    return "\n".join(lines) + "\n"


def _approved_environments(settings: Settings, pipeline: Pipeline | None) -> str:
    """The environments whose deploys are approved; the last one of the forge where none of them is protected."""
    protected = (PROTECTED,) if pipeline is None else pipeline.protected
    return " and ".join(name for name in settings.environments if name in protected) or settings.environments[-1]
