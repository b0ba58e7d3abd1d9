"""A program in YAML that deploys a model with the package."""

PROGRAM = """\
name: shop
runtime: yaml
packages:
  bezel: "@plugin@"
resources:
  apis:
    type: bezel:project:EnabledApis
    properties:
      project: bezel-local
      services: [run.googleapis.com, artifactregistry.googleapis.com, iam.googleapis.com]
  runtime:
    type: bezel:identity:RuntimeIdentity
    properties: {project: bezel-local, accountId: shop-runtime}
    options: {dependsOn: ["${apis}"]}
  weights:
    type: bezel:storage:WeightsBucket
    properties: {project: bezel-local, location: us-east4, bucket: shop-models, readers: ["${runtime.email}"]}
  model:
    type: bezel:components:ModelFiles
    properties:
      bucketUrl: ${weights.url}
      bucket: ${weights.bucket}
      path: gemma
      source: google/gemma-4-E2B-it
  image:
    type: bezel:registry:ContainerImage
    properties:
      {project: bezel-local, location: us-east4, repositoryId: hub, image: vllm/vllm-openai, tag: v0.32.0}
    options: {dependsOn: ["${apis}"]}
  service:
    type: bezel:cloudrun:CloudRunGpuService
    properties:
      project: bezel-local
      location: us-east4
      service: chat
      image: ${image.reference}
      accelerator: nvidia-l4
      serviceAccount: ${runtime.email}
      maxInstances: 1
      requestConcurrency: 16
      deletionProtection: false
      container:
        arguments: [/mnt/models/gemma, --served-model-name=gemma, --max-model-len=4096]
        cpu: 4
        memoryGib: 16
        startupProbe: {path: /health, periodSeconds: 30, timeoutSeconds: 5, failureThreshold: 50}
        mounts: [{bucket: shop-models, path: /mnt/models}]
    options: {dependsOn: ["${model}", "${weights}"]}
  health:
    type: bezel:smoke:HealthCheck
    properties:
      service: ${service.resourceName}
      url: ${service.url}
      revision: ${service.createdRevision}
      servedModel: gemma
outputs:
  url: ${service.url}
"""
