"""A program in TypeScript that deploys a model with the package, and the packages of npm that it needs."""

import json
import os
import subprocess
from pathlib import Path

from tests.support.clients.environment import npm
from tests.support.plugin.program import ROOT, go_program

HOSTS = ROOT / "packages" / "pulumi-offline" / "bezel_pulumi_offline" / "plugins"
"""Where the language host of Node programs is."""
SDK = "sdks/bezel"
PROJECT = """\
name: shop
runtime: nodejs
packages:
  bezel: "@plugin@"
"""
PROGRAM = """\
import * as bezel from "@pulumi/bezel";

const place = { project: "bezel-local", location: "us-east4" };

const apis = new bezel.project.EnabledApis("apis", {
    project: place.project,
    services: ["run.googleapis.com", "artifactregistry.googleapis.com", "iam.googleapis.com"],
});
const runtime = new bezel.identity.RuntimeIdentity(
    "runtime", { project: place.project, accountId: "shop-runtime" }, { dependsOn: [apis] },
);
const weights = new bezel.storage.WeightsBucket("weights", {
    ...place, bucket: "shop-models", readers: [runtime.email],
});
const model = new bezel.components.ModelFiles("model", {
    bucketUrl: weights.url, bucket: weights.bucket, path: "gemma", source: "google/gemma-4-E2B-it",
});
const image = new bezel.registry.ContainerImage(
    "image", { ...place, repositoryId: "hub", image: "vllm/vllm-openai", tag: "v0.32.0" }, { dependsOn: [apis] },
);
const service = new bezel.cloudrun.CloudRunGpuService("service", {
    ...place,
    service: "chat",
    image: image.reference,
    accelerator: "nvidia-l4",
    serviceAccount: runtime.email,
    maxInstances: 1,
    requestConcurrency: 16,
    deletionProtection: false,
    container: {
        arguments: ["/mnt/models/gemma", "--served-model-name=gemma", "--max-model-len=4096"],
        cpu: 4,
        memoryGib: 16,
        startupProbe: { path: "/health", periodSeconds: 30, timeoutSeconds: 5, failureThreshold: 50 },
        mounts: [{ bucket: "shop-models", path: "/mnt/models" }],
    },
}, { dependsOn: [model, weights] });
const health = new bezel.smoke.HealthCheck("health", {
    service: service.resourceName, url: service.url, revision: service.createdRevision, servedModel: "gemma",
});

export const url = service.url;
export const verdict = health.verdict;
"""
FILES = {
    "Pulumi.yaml": PROJECT,
    "index.ts": PROGRAM,
    "package.json": json.dumps({"name": "shop", "main": "index.ts"}),
    "tsconfig.json": json.dumps({"compilerOptions": {"strict": True, "target": "es2022", "module": "commonjs",
                                                     "moduleResolution": "node", "skipLibCheck": True}}),
}  # fmt: skip


def compile_sdk(folder: Path, schema: Path) -> None:
    """Write the package's SDK for TypeScript to a folder and compile it.

    Args:
        folder: Where its sources go; what is compiled is in `bin`.
        schema: The schema's file.
    """
    generator = go_program("pulumi-sdk-generator") / "pulumi-sdk-generator"
    folder.mkdir(parents=True)
    subprocess.run([generator, "-local", "nodejs", schema, folder], check=True, timeout=120)
    modules = npm("pulumi") / "node_modules"
    (folder / "node_modules").symlink_to(modules)
    # What npm runs when it installs the SDK: the compiler, strict.
    path = os.pathsep.join([str(modules / ".bin"), os.environ["PATH"]])
    ended = subprocess.run(
        ["node", "scripts/postinstall.js"],
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def install(program: Path) -> None:
    """Put npm's packages and the compiled SDK into a program's `node_modules`, as `npm install` would."""
    modules = program / "node_modules"
    for package in (npm("pulumi") / "node_modules").iterdir():
        if package.name == "@pulumi":
            (modules / package.name).mkdir(parents=True)
            for inner in package.iterdir():
                (modules / package.name / inner.name).symlink_to(inner)
        else:
            modules.mkdir(exist_ok=True)
            (modules / package.name).symlink_to(package)
    (modules / "@pulumi" / "bezel").symlink_to(program / SDK)
