"""Steps that follow a set-up without a forge: a deploy by hand, and the set-up's destroy. Pure."""

from collections.abc import Mapping

from bezel.gitops.project_setup.folder import SetupFolder
from bezel_base.text.shell import shell_word


def text(outputs: Mapping[str, str], folder: SetupFolder, *, has_key: bool) -> str:
    """The whole text, for a terminal.

    Args:
        outputs: Outputs of the foundation.
        folder: Folder of the set-up.
        has_key: Whether the engine can encrypt with the key.
    """
    bucket = outputs["backend_url"].removeprefix("gs://")
    provider = outputs["secrets_provider"] if has_key else "passphrase"
    variables = {"GOOGLE_PROJECT": folder.project, "PULUMI_BACKEND_URL": outputs["backend_url"]}
    if not has_key:  # the engine has no setting for another address of Cloud KMS
        variables["PULUMI_CONFIG_PASSPHRASE_FILE"] = str(folder.passphrase)
    smoke = outputs["smoke_account"]
    lines = [
        "1. Use the states in the bucket, in each shell",
        "",
        *(f"    export {name}={shell_word(value)}" for name, value in variables.items()),
        "",
        "2. Let the check of a deploy call the service, in the file of each stack",
        "",
        f"    bezel:smoke: {{impersonate: {smoke}}}",
        f'    bezel:access: {{invokers: ["serviceAccount:{smoke}"]}}',
        "",
        "3. Make each stack, look what is missing, and deploy",
        "",
        f"    pulumi stack init STACK --secrets-provider={shell_word(provider)}",
        "    bezel doctor STACK",
        "    pulumi up --stack STACK",
        "",
        "Destroy all of it, once the bucket holds no stack:",
        "",
        f"    bezel init --destroy --project {shell_word(folder.project)} --state-bucket {shell_word(bucket)}",
    ]
    return "\n".join(lines) + "\n"
