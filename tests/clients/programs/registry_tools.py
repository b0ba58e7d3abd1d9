"""Calls of crane, oras, skopeo and podman on a registry: `registry_tools.py TOOL REGISTRY KEY_FILE FOLDER`.

REGISTRY is `HOST:PORT`; its repository us-east4-docker.pkg.dev/bezel-local/tools is empty. The variable REGISTRY_TOKEN
holds an access token. FOLDER is empty and becomes the home of the tool. A call is one command of the tool, which must
end with status 0 and print what it has to; `refused` ones must fail with a text.
"""

import base64
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

from outcomes import Calls

TOOL, HOST, KEYS, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
PASSWORD = os.environ["REGISTRY_TOKEN"]
GOOGLE = f"{HOST}/us-east4-docker.pkg.dev/bezel-local/tools"
HUB = f"{HOST}/vllm/vllm-openai:v0.32.0"
LARGE = bytes(range(256)) * 40_000  # 10 MB
VERSIONS = {"crane": ("version",), "oras": ("version",), "skopeo": ("--version",), "podman": ("--version",)}


def run(*arguments: str | Path, standard_input: str = "", says: str = "", status: int = 0) -> str:
    """Run a command of the tool and return what it prints."""
    ended = subprocess.run(
        [TOOL, *map(str, arguments)],
        input=standard_input,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=FOLDER,
    )
    text = ended.stdout + ended.stderr
    assert bool(ended.returncode) == bool(status), f"exit status {ended.returncode}: {text[-600:]}"
    assert says in text, f"{says!r} is not in {text[-600:]}"
    return ended.stdout


def expect_refusal(*arguments: str, says: str) -> str:
    """Run a command that must fail."""
    return run(*arguments, says=says, status=1)


def layer() -> Path:
    """A layer of 10 MB as a file."""
    path = FOLDER / "layer.tar"
    with tarfile.open(path, "w") as tar:
        entry = tarfile.TarInfo("data.bin")
        entry.size = len(LARGE)
        tar.addfile(entry, io.BytesIO(LARGE))
    return path


def crane(calls: Calls) -> None:
    """Every command of crane that talks to a registry."""
    app, files = f"{GOOGLE}/app", layer()

    def check(name: str, *arguments: str | Path, says: str = "") -> None:
        calls.passes(name, lambda: run(*arguments, says=says))

    login = ("auth", "login", HOST, "-u", "oauth2accesstoken", "--password-stdin")
    calls.passes("auth login", lambda: run(*login, standard_input=PASSWORD))
    check("digest", "digest", HUB, says="sha256:")
    check("manifest", "manifest", HUB, says="amd64")
    check("config", "config", HUB, says='"vllm"')
    check("pull", "pull", HUB, "vllm.tar")
    check("export", "export", HUB, "files.tar")
    check("validate, an image of the catalogue", "validate", "--remote", HUB, says="PASS")
    check("append", "append", "-f", files, "-t", f"{app}:1", says="sha256:")
    check("append to a base", "append", "-b", f"{app}:1", "-f", files, "-t", f"{app}:2")
    check("validate, a pushed image", "validate", "--remote", f"{app}:2", says="PASS")
    check("push", "push", "vllm.tar", f"{GOOGLE}/vllm:1")
    check("copy, all platforms", "copy", HUB, f"{GOOGLE}/vllm/openai:v0.32.0")
    check("copy, mounted", "copy", f"{app}:1", f"{GOOGLE}/other:1", says="mounted blob")
    check("ls", "ls", app, says="1\n2")
    check("ls --full-ref", "ls", "--full-ref", app, says=f"{app}:2")
    check("catalog", "catalog", HOST, says="us-east4-docker.pkg.dev/bezel-local/tools/app")
    check("tag", "tag", f"{app}:1", "latest")
    check("mutate", "mutate", f"{app}:1", "--entrypoint", "bezel", "-t", f"{app}:mutated")
    check("rebase", "rebase", f"{app}:2", "--old_base", f"{app}:1", "--new_base", f"{app}:latest", "-t", f"{app}:3")
    check("flatten", "flatten", f"{app}:2", "-t", f"{app}:flat")
    check("index append", "index", "append", "-m", f"{app}:1", "-m", f"{app}:2", "-t", f"{app}:both")
    check("index list", "index", "list", f"{app}:both", says="sha256:")
    check("index filter", "index", "filter", f"{app}:both", "--platform", "linux/amd64", "-t", f"{app}:filtered")

    def blob() -> None:
        digest = json.loads(run("manifest", f"{app}:1"))["config"]["digest"]
        assert "sha256:" + hashlib.sha256(run("blob", f"{app}@{digest}").encode()).hexdigest() == digest

    calls.passes("blob", blob)
    check("delete, a tag", "delete", f"{app}:latest")
    whole = f"{app}@{run('digest', f'{app}:filtered').strip()}"
    tagged = "GOOGLE_MANIFEST_DANGLING_TAG"
    calls.passes("delete, a tagged digest: refused", lambda: expect_refusal("delete", whole, says=tagged))
    check("delete, its tag", "delete", f"{app}:filtered")
    check("delete, a digest", "delete", whole)
    calls.passes("digest, deleted: refused", lambda: expect_refusal("digest", whole, says="MANIFEST_UNKNOWN"))
    calls.passes("ls, no such image: refused", lambda: expect_refusal("ls", f"{GOOGLE}/none", says="NAME_UNKNOWN"))
    frozen = GOOGLE.replace("/tools", "/frozen")
    check("push, immutable tags", "push", "vllm.tar", f"{frozen}/vllm:1")
    why = "cannot update tag 1. The repository has enabled tag immutability"
    calls.passes(
        "append, an immutable tag: refused",
        lambda: expect_refusal("append", "-f", files, "-t", f"{frozen}/vllm:1", says=why),
    )
    check("auth logout", "auth", "logout", HOST)
    denied = "Unauthenticated requests do not have permission"
    calls.passes("digest, logged out: refused", lambda: expect_refusal("digest", f"{app}:1", says=denied))
    check("digest of a public image, logged out", "digest", HUB)


def oras(calls: Calls) -> None:
    """Commands of oras: artifacts, referrers, copies."""
    art, insecure = f"{GOOGLE}/artifact", "--plain-http"
    (FOLDER / "a.txt").write_text("hello\n")
    (FOLDER / "big.bin").write_bytes(LARGE)

    def check(name: str, *arguments: str, says: str = "") -> None:
        calls.passes(name, lambda: run(*arguments, says=says))

    login = ("login", insecure, HOST, "-u", "_json_key", "--password-stdin")
    calls.passes("login with a key file", lambda: run(*login, standard_input=json.dumps(json.loads(KEYS.read_text()))))
    check("push", "push", insecure, f"{art}:1", "--artifact-type", "application/x.test", "a.txt:text/plain", "big.bin")

    def pull() -> None:
        run("pull", insecure, "-o", "out", f"{art}:1")
        assert (FOLDER / "out" / "big.bin").read_bytes() == LARGE

    calls.passes("pull", pull)
    check("attach", "attach", insecure, "--artifact-type", "application/x.bill", f"{art}:1", "a.txt:text/plain")
    check("attach, another type", "attach", insecure, "--artifact-type", "application/x.sign", f"{art}:1", "a.txt")
    check("discover", "discover", insecure, f"{art}:1", says="application/x.sign")
    check(
        "discover, one type", "discover", insecure, "--artifact-type", "application/x.bill", f"{art}:1", says="x.bill"
    )
    check("tag", "tag", insecure, f"{art}:1", "v2", "v3")
    check("resolve", "resolve", insecure, f"{art}:v2", says="sha256:")
    check("repo tags", "repo", "tags", insecure, art, says="1\nv2\nv3")
    check("repo ls", "repo", "ls", insecure, HOST, says="us-east4-docker.pkg.dev/bezel-local/tools/artifact")
    check("manifest fetch", "manifest", "fetch", insecure, f"{art}:1", says="application/x.test")
    check("manifest fetch-config", "manifest", "fetch-config", insecure, f"{art}:1", says="{}")
    digest = "sha256:" + hashlib.sha256(b"hello\n").hexdigest()
    check("blob fetch", "blob", "fetch", insecure, "--output", "-", f"{art}@{digest}", says="hello")
    layer()
    check("blob push", "blob", "push", insecure, art, "layer.tar", says="Pushed")
    used = "still referenced"
    calls.passes(
        "blob delete, in use: refused",
        lambda: expect_refusal("blob", "delete", insecure, "-f", f"{art}@{digest}", says=used),
    )
    free = "sha256:" + hashlib.sha256((FOLDER / "layer.tar").read_bytes()).hexdigest()
    check("blob delete", "blob", "delete", insecure, "-f", f"{art}@{free}")
    both = ("--from-plain-http", "--to-plain-http")
    check("cp, with referrers", "cp", *both, "-r", f"{art}:1", f"{GOOGLE}/copied:1")
    check("discover, in the copy", "discover", insecure, f"{GOOGLE}/copied:1", says="application/x.bill")
    check("manifest index create", "manifest", "index", "create", insecure, f"{art}:index", "1")
    check("backup", "backup", insecure, "-o", "backup.tar", f"{art}:1")
    check("restore", "restore", insecure, "--input", "backup.tar", f"{GOOGLE}/restored:1")
    tagged = "Manifest is still referenced by tag"
    deletion = ("manifest", "delete", insecure, "-f", f"{art}:v3")
    calls.passes("manifest delete, a tagged one: refused", lambda: expect_refusal(*deletion, says=tagged))
    check("logout", "logout", HOST)


def skopeo(calls: Calls) -> None:
    """Commands of skopeo: inspect, copies between transports, sync, delete."""
    (FOLDER / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    policy_options = ("--policy", "policy.json")
    image, source, target = f"{GOOGLE}/skopeo", "--src-tls-verify=false", "--dest-tls-verify=false"

    def check(name: str, *arguments: str, says: str = "") -> None:
        calls.passes(name, lambda: run(*policy_options, *arguments, says=says))

    auth = ("--authfile", str(FOLDER / "auth.json"))
    check("inspect, without login", "inspect", "--tls-verify=false", f"docker://{HUB}", says="v0.33.0")
    login = (*policy_options, "login", *auth, "--tls-verify=false", HOST, "-u", "_json_key_base64", "--password-stdin")
    wrong = (*policy_options, "login", *auth, "--tls-verify=false", HOST, "-u", "oauth2accesstoken", "-p", "wrong")
    calls.passes("login, a wrong token: refused", lambda: expect_refusal(*wrong, says="invalid username/password"))
    key = base64.b64encode(KEYS.read_bytes()).decode()
    calls.passes("login with a key file", lambda: run(*login, standard_input=key, says="Login Succeeded"))
    os.environ["REGISTRY_AUTH_FILE"] = str(FOLDER / "auth.json")
    check("copy, all platforms", "copy", source, target, "--all", f"docker://{HUB}", f"docker://{image}:all")
    check("copy to a folder", "copy", source, f"docker://{image}:all", "dir:folder")
    check("copy to an OCI layout", "copy", source, f"docker://{image}:all", "oci:layout:1")
    check("copy to an archive", "copy", source, f"docker://{image}:all", "docker-archive:archive.tar")
    check("copy from an archive", "copy", target, "docker-archive:archive.tar", f"docker://{image}:docker")
    check("copy from an OCI layout", "copy", target, "oci:layout:1", f"docker://{image}:oci")
    check(
        "copy, converted", "copy", source, target, "--format", "v2s2", f"docker://{image}:oci", f"docker://{image}:v2"
    )
    check("list-tags", "list-tags", "--tls-verify=false", f"docker://{image}", says="oci")
    check("inspect", "inspect", "--tls-verify=false", f"docker://{image}:oci", says="sha256:")
    check("inspect --raw", "inspect", "--raw", "--tls-verify=false", f"docker://{image}:v2", says="docker.distribution")
    check("inspect --config", "inspect", "--config", "--tls-verify=false", f"docker://{image}:oci", says="vllm")
    check("sync", "sync", "--src", "docker", "--dest", "dir", source, image, "synced", says="Synced")
    unknown = ("inspect", "--tls-verify=false", f"docker://{image}:none")
    calls.passes(
        "inspect, no such tag: refused", lambda: expect_refusal(*policy_options, *unknown, says="manifest unknown")
    )
    # It deletes by digest, which Artifact Registry refuses while there is a tag.
    deletion = ("delete", "--tls-verify=false", f"docker://{image}:docker")
    calls.passes(
        "delete, by a tag: refused",
        lambda: expect_refusal(*policy_options, *deletion, says="GOOGLE_MANIFEST_DANGLING_TAG"),
    )
    check("logout", "logout", HOST)
    denied = "Unauthenticated requests do not have permission"
    private = ("inspect", "--tls-verify=false", f"docker://{image}:oci")
    calls.passes("inspect, logged out: refused", lambda: expect_refusal(*policy_options, *private, says=denied))


def podman_settings() -> None:
    """Settings of podman's own: storage in the folder, and the registry without TLS. No container is run."""
    folder = TOOL.rpartition("/")[0]
    settings = {
        "CONTAINERS_CONF": (
            f'[engine]\nconmon_path = ["{folder}/conmon"]\nruntime = "crun"\ncgroup_manager = "cgroupfs"\n'
            f'events_logger = "none"\n[engine.runtimes]\ncrun = ["{folder}/crun"]\n[network]\nnetwork_backend = "cni"\n'
        ),
        "CONTAINERS_STORAGE_CONF": (
            f'[storage]\ndriver = "vfs"\ngraphroot = "{FOLDER}/storage"\nrunroot = "{FOLDER}/run"\n'
        ),
        "CONTAINERS_REGISTRIES_CONF": f'[[registry]]\nlocation = "{HOST}"\ninsecure = true\n',
    }
    for name, text in settings.items():
        (FOLDER / name).write_text(text)
        os.environ[name] = str(FOLDER / name)
    policy = FOLDER / ".config" / "containers" / "policy.json"
    policy.parent.mkdir(parents=True)
    policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    # `pull --all-tags` knows the default file of credentials only, which lies in this folder.
    os.environ |= {"XDG_RUNTIME_DIR": str(FOLDER), "TMPDIR": str(FOLDER)}


def podman(calls: Calls) -> None:
    """Commands of podman that talk to a registry: login, build and push, pull, lists of images, search, logout."""
    podman_settings()
    image, key = f"{GOOGLE}/podman", base64.b64encode(KEYS.read_bytes()).decode()

    def check(name: str, *arguments: str, says: str = "") -> None:
        calls.passes(name, lambda: run(*arguments, says=says))

    wrong = ("login", HOST, "-u", "oauth2accesstoken", "-p", "wrong")
    calls.passes("login, a wrong token: refused", lambda: expect_refusal(*wrong, says="invalid username/password"))
    token = ("login", HOST, "-u", "oauth2accesstoken", "--password-stdin")
    calls.passes("login with a token", lambda: run(*token, standard_input=PASSWORD, says="Login Succeeded"))
    file = ("login", HOST, "-u", "_json_key_base64", "--password-stdin")
    calls.passes("login with a key file", lambda: run(*file, standard_input=key, says="Login Succeeded"))
    check("login --get-login", "login", "--get-login", HOST, says="_json_key_base64")
    (FOLDER / "data.bin").write_bytes(LARGE)
    (FOLDER / "Containerfile").write_text('FROM scratch\nCOPY data.bin /\nCMD ["vllm"]\nLABEL tried=yes\n')
    check("build", "build", "-t", f"{image}:1", ".", says="COMMIT")
    check("push", "push", f"{image}:1", says="Writing manifest")
    check("push, layers that are there", "push", f"{image}:1", says="Writing manifest")
    check("push, docker's format", "push", "--format", "v2s2", f"{image}:1", f"{image}:docker")
    check("push --digestfile", "push", "--digestfile", "digest", f"{image}:1")
    check("push, zstd", "push", "--compression-format", "zstd", "--format", "oci", f"{image}:1", f"{image}:zstd")
    check("rmi", "rmi", "--all", "--force", says="Untagged")
    check("pull", "pull", f"{image}:1")
    check("pull, a digest", "pull", f"{image}@{(FOLDER / 'digest').read_text()}")
    check("pull, zstd", "pull", f"{image}:zstd")
    check("pull --all-tags", "pull", "--all-tags", image)
    check("inspect", "inspect", f"{image}:docker", says='"tried": "yes"')
    check("image ls", "image", "ls", says=f"{image}")
    check("pull, a public image", "pull", HUB)
    check("tag, push to another image", "tag", f"{image}:1", f"{GOOGLE}/other:1")
    check("push, mounted", "push", f"{GOOGLE}/other:1")
    check("manifest create", "manifest", "create", "both")
    check("manifest add", "manifest", "add", "both", f"docker://{image}:1")
    check("manifest push", "manifest", "push", "--all", "both", f"docker://{image}:list")
    check("manifest inspect", "manifest", "inspect", f"{image}:list", says="amd64")
    check("save", "save", "-o", "saved.tar", f"{image}:1")
    check("load", "load", "-i", "saved.tar", says="Loaded image")
    check("search --list-tags", "search", "--list-tags", image, says="docker")
    absent = ("pull", f"{image}:absent")
    calls.passes("pull, no such tag: refused", lambda: expect_refusal(*absent, says="manifest unknown"))
    frozen = f"{GOOGLE.replace('/tools', '/frozen')}/podman:1"
    check("push, immutable tags", "push", f"{image}:1", frozen)
    calls.passes(
        "push, an immutable tag: refused", lambda: expect_refusal("push", HUB, frozen, says="tag immutability")
    )
    check("logout", "logout", HOST, says="Removed login credentials")
    calls.passes("push, logged out: refused", lambda: expect_refusal("push", f"{image}:1", says="403 (Forbidden)"))


def main() -> None:
    """Call one tool."""
    os.environ["HOME"] = str(FOLDER)
    name = Path(TOOL).name
    text = run(*VERSIONS[name]).strip()
    version = re.search(r"\d+\.\d+\.\d+", text)
    {"crane": crane, "oras": oras, "skopeo": skopeo, "podman": podman}[name](
        Calls(f"{name} {version[0]}" if version else name)
    )


if __name__ == "__main__":
    main()
