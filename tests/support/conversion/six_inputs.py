"""Six inputs of a conversion, one of each kind, and one that cannot be served."""

import json
from typing import Any

IMAGE = "us-east4-docker.pkg.dev/acme-llm/hub/vllm/vllm-openai@sha256:" + "0123456789abcdef" * 4
LIVE: dict[str, Any] = {
    "name": "projects/acme-llm/locations/us-east4/services/chat",
    "uid": "1fd2ba76-2d89-4e45-b472-bc5863a63f5f",
    "generation": "4",
    "etag": '"a691137f6887"',
    "uri": "https://chat-abc-uk.a.run.app",
    "ingress": "INGRESS_TRAFFIC_ALL",
    "launchStage": "GA",
    "traffic": [
        {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION", "revision": "chat-00003-abc", "percent": 90},
        {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 10},
    ],
    "labels": {"team": "chat", "goog-managed-by": "console"},
    "template": {
        "serviceAccount": "chat-server@acme-llm.iam.gserviceaccount.com",
        "containers": [
            {
                "name": "vllm",
                "image": IMAGE,
                "command": ["vllm", "serve"],
                "args": [
                    "/models/gemma-4-12B-it-qat-w4a16-ct",
                    "--served-model-name=gemma",
                    "--port=8000",
                    "--max-model-len=16384",
                    "--kv-cache-dtype=fp8",
                    "--enable-auto-tool-choice",
                    "--tool-call-parser=gemma4",
                    "--api-key=sk-live-0123456789abcdef",
                ],
                "env": [
                    {"name": "VLLM_LOGGING_LEVEL", "value": "INFO"},
                    {"name": "HF_HUB_OFFLINE", "value": "1"},
                    {
                        "name": "OTEL_TOKEN",
                        "valueSource": {"secretKeyRef": {"secret": "projects/acme-llm/secrets/otel", "version": "2"}},
                    },
                ],
                "ports": [{"name": "http1", "containerPort": 8000}],
                "resources": {
                    "limits": {"cpu": "8000m", "memory": "32Gi", "nvidia.com/gpu": "1"},
                    "startupCpuBoost": False,
                },
                "startupProbe": {"tcpSocket": {"port": 8000}, "periodSeconds": 10, "failureThreshold": 120},
                "volumeMounts": [
                    {"name": "models", "mountPath": "/models"},
                    {"name": "scratch", "mountPath": "/scratch"},
                ],
            },
            {"name": "otel", "image": "otel/opentelemetry-collector:0.140.0"},
        ],
        "volumes": [
            {"name": "models", "gcs": {"bucket": "acme-weights", "readOnly": True}},
            {"name": "scratch", "emptyDir": {"medium": "MEMORY"}},
        ],
        "nodeSelector": {"accelerator": "nvidia-l4"},
        "gpuZonalRedundancyDisabled": True,
        "scaling": {"minInstanceCount": 1, "maxInstanceCount": 2},
        "maxInstanceRequestConcurrency": 16,
        "timeout": "600s",
        "sessionAffinity": True,
    },
}
COMPOSE = """\
x-logging: &logging
  logging: {driver: json-file}
services:
  web:
    image: ghcr.io/acme/web:3
    depends_on: [vllm]
  vllm:
    <<: *logging
    image: vllm/vllm-openai:${VLLM_TAG:-v0.33.0}
    ports:
      - "8000:8000"
    volumes:
      - ${HF_HOME:-~/.cache/huggingface}:/root/.cache/huggingface
      - ./templates:/templates
    env_file: .env
    environment:
      - HUGGING_FACE_HUB_TOKEN=${HF_TOKEN}
      - VLLM_USE_V2_MODEL_RUNNER=1
      - OPENAI_API_KEY=sk-proj-0123456789abcdefghijklmnop
    ipc: host
    command: >
      --model ${MODEL:-google/gemma-4-E4B-it}
      --max-model-len 16384
      --gpu-memory-utilization ${UTILIZATION:-0.9}
      --host 0.0.0.0 --port 8000
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: 1
              capabilities: [gpu]
"""
SIX = {
    "live_service": json.dumps(LIVE, indent=2),
    "vllm_serve": "vllm serve google/gemma-4-12B-it --max-model-len 32768 --gpu-memory-utilization 0.95"
    " --api-key secret-1",
    "vllm_serve_eight_gpus": "HF_TOKEN=hf_0123456789abcdefghijABCDEFGHIJ0123 vllm serve google/gemma-4-31B-it -tp 8"
    " --max-model-len 65536 --max-num-seqs 64 --kv-cache-dtype fp8",
    "gcloud_run_deploy": "gcloud run deploy gemma --image=vllm/vllm-openai:v0.32.0 --region=us-east4 \\\n"
    "  --project=acme-llm \\\n"
    "  --gpu=1 --gpu-type=nvidia-l4 --no-gpu-zonal-redundancy --cpu=8 --memory=32Gi --no-cpu-throttling \\\n"
    "  --concurrency=16 --max=2 --min=0 --timeout=3600 --port=8080 --ingress=all --no-allow-unauthenticated \\\n"
    "  --set-env-vars=^:^VLLM_LOGGING_LEVEL=DEBUG:HF_TOKEN=hf_0123456789abcdefghijABCDEFGHIJ0123 \\\n"
    "  --session-affinity \\\n"
    "  --args=--model=google/gemma-4-E4B-it,--max-model-len=16384,--max-num-seqs=8",
    "compose": COMPOSE,
    "not_served": "gcloud run deploy llama --image=vllm/vllm-openai:latest --region=us-west1 --project=acme-llm --gpu=1"
    " --gpu-type=nvidia-t4 --cpu=2 --memory=8Gi --args=--model=meta-llama/Llama-3.1-8B-Instruct,--swap-space=4",
}
CREDENTIALS = ("hf_0123456789", "sk-live", "sk-proj", "secret-1")
