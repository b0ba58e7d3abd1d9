"""Commands and files as vLLM's, Google's and Hugging Face's documents, and people's own repositories, write them.

Each with settings that it converts to, and words of what is said about it; written for these tests.
"""

from typing import Any, NamedTuple


class Published(NamedTuple):
    """One line: the text, settings by path, and words that the remarks or the objections have."""

    text: str
    settings: dict[str, Any]
    remarks: tuple[str, ...] = ()


PUBLISHED = {
    "the quickstart": Published(
        "vllm serve google/gemma-4-12B-it",
        {
            "model": "gemma-4-12b-it",
            "accelerator": "nvidia-rtx-pro-6000",
            "vllm.served-model-name": "google/gemma-4-12B-it",
        },
        ("the cheapest with the fewest objections", "weights copy"),
    ),
    "a prompt, and lines that go on": Published(
        "$ vllm serve google/gemma-4-12B-it-qat-w4a16-ct \\\n    --max-model-len 32768 \\\n    --max-num-seqs 8\n",
        {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4", "vllm.max-model-len": None},
    ),
    "a comment, a variable, a log": Published(
        "# two L4s are too few\nexport HF_HOME=/data/hf  # the cache\n"
        "CUDA_VISIBLE_DEVICES=0 nohup vllm serve google/gemma-4-E4B-it --dtype auto > vllm.log 2>&1 &",
        {"model": "gemma-4-e4b-it", "variables.HF_HOME": "/data/hf", "vllm.dtype": "auto"},
        ("CUDA_VISIBLE_DEVICES",),
    ),
    "the module": Published(
        "python -m vllm.entrypoints.openai.api_server --model google/gemma-4-E2B-it --host 0.0.0.0 --port 8000",
        {"model": "gemma-4-e2b-it", "vllm.host": None, "vllm.port": None},
        ("--port: 8000",),
    ),
    "the module by python3 with underscores": Published(
        "python3 -m vllm.entrypoints.openai.api_server --model=google/gemma-4-E2B-it --max_model_len=16k"
        " --gpu_memory_utilization=0.9",
        {"vllm.max-model-len": 16000, "vllm.gpu-memory-utilization": 0.9},
    ),
    "uv": Published("uv run vllm serve google/gemma-4-12b-it --quantization fp8", {"vllm.quantization": "fp8"}),
    "uv with further packages": Published(
        "uv run --with 'vllm>=0.30' --torch-backend auto vllm serve google/gemma-4-E2B-it --seed 3", {"vllm.seed": 3}
    ),
    "compose by hand is no server": Published(
        "docker compose up -d\ndocker container run --gpus=all vllm/vllm-openai:v0.32.0 google/gemma-4-E2B-it",
        {"model": "gemma-4-e2b-it"},
    ),
    "tools and reasoning": Published(
        "vllm serve google/gemma-4-26B-A4B-it --enable-auto-tool-choice --tool-call-parser gemma4"
        " --reasoning-parser gemma4 --limit-mm-per-prompt '{\"image\": 4}' --async-scheduling",
        {
            "model": "gemma-4-26b-a4b-it",
            "vllm.limit-mm-per-prompt": {"image": 4},
            "vllm.async-scheduling": True,
            "vllm.tool-call-parser": None,
        },
    ),
    "speculation as JSON": Published(
        "vllm serve google/gemma-4-12B-it-qat-w4a16-ct --speculative-config"
        ' \'{"method": "ngram", "num_speculative_tokens": 3}\' --no-enable-prefix-caching',
        {
            "vllm.speculative-config": {"method": "ngram", "num_speculative_tokens": 3},
            "vllm.enable-prefix-caching": False,
        },
    ),
    "speculation as vLLM's recipe has it": Published(
        "vllm serve google/gemma-4-12B-it-qat-w4a16-ct --enable-lora --lora-modules sql=/srv/sql --speculative-config"
        ' \'{"method": "mtp", "model": "google/gemma-4-12B-it-assistant", "num_speculative_tokens": 3}\'',
        {
            "vllm.speculative-config": {
                "method": "mtp",
                "model": "/mnt/models/gemma-4-12B-it-assistant",
                "num_speculative_tokens": 3,
            },
            "vllm.lora-modules": "sql=/srv/sql",
        },
    ),
    "a bucket as the hub's cache": Published(
        "gcloud run deploy a --image vllm/vllm-openai:v0.32.0 --gpu 1 --region us-east4"
        " --args=--model=google/gemma-4-E2B-it --add-volume=name=c,type=cloud-storage,bucket=acme-cache"
        " --add-volume-mount=volume=c,mount-path=/root/.cache",
        {"weights.loading": "hub", "weights.bucket": None},
        ("mount /root/.cache: acme-cache",),
    ),
    "speculation by parts": Published(
        "vllm serve google/gemma-4-12B-it --speculative-config.method ngram"
        " --speculative-config.num_speculative_tokens=3 -O.mode=3 --compilation-config.cudagraph_mode FULL",
        {
            "vllm.speculative-config": {"method": "ngram", "num_speculative_tokens": 3},
            "vllm.compilation-config": {"cudagraph_mode": "FULL"},
        },
        ("-O",),
    ),
    "eight GPUs": Published(
        "vllm serve google/gemma-4-31B-it --tensor-parallel-size 8 --max-model-len 65536",
        {
            "accelerator": "g2-standard-96",
            "network.nat": True,
            "vllm.tensor-parallel-size": None,
            "vllm.max-model-len": 65536,
        },
        ("8 GPUs",),
    ),
    "two GPUs": Published(
        "vllm serve google/gemma-4-31B-it -tp 2",
        {"accelerator": "nvidia-rtx-pro-6000", "vllm.tensor-parallel-size": None},
        ("--tensor-parallel-size: 2: an instance of Cloud Run has one GPU",),
    ),
    "an option of last year": Published(
        "vllm serve google/gemma-4-12B-it --swap-space 16 --disable-log-requests --max-seq-len-to-capture 8192",
        {"vllm.swap-space": None},
        ("--swap-space", "--max-seq-len-to-capture"),
    ),
    "another model": Published(
        "vllm serve Qwen/Qwen3-8B --reasoning-parser qwen3",
        {"model": "Qwen/Qwen3-8B"},
        ("not in the catalogue",),
    ),
    "an old gemma": Published(
        "vllm serve google/gemma-3-27b-it", {"model": "google/gemma-3-27b-it"}, ("not in the catalogue",)
    ),
    "docker, as vLLM's document has it": Published(
        "docker run --runtime nvidia --gpus all \\\n    -v ~/.cache/huggingface:/root/.cache/huggingface \\\n"
        '    --env "HF_TOKEN=<secret>" \\\n    -p 8000:8000 \\\n    --ipc=host \\\n    vllm/vllm-openai:latest \\\n'
        "    --model google/gemma-4-12B-it",
        {"model": "gemma-4-12b-it", "secrets": None, "vllm_version": None},
        ("HF_TOKEN", "vllm/vllm-openai:latest"),
    ),
    "docker, a fixed release and short options": Published(
        "sudo -E env A=1 docker run -d --rm --name gemma --gpus '\"device=0\"' --shm-size 16g -p 80:8000"
        " -e VLLM_LOGGING_LEVEL=DEBUG vllm/vllm-openai:v0.33.0 --model=google/gemma-4-E4B-it --max-model-len=8192",
        {"vllm_version": "0.33.0", "variables.VLLM_LOGGING_LEVEL": "DEBUG", "vllm.max-model-len": 8192},
    ),
    "docker, an entrypoint": Published(
        "docker run --gpus=all --entrypoint vllm -v /srv/models:/models vllm/vllm-openai:v0.32.0 serve"
        " /models/gemma-4-12B-it --served-model-name gemma",
        {"model": "gemma-4-12b-it", "vllm.served-model-name": "gemma"},
        ("/srv/models", "it is a folder of that machine"),
    ),
    "podman and an old release": Published(
        "podman run --device nvidia.com/gpu=all docker.io/vllm/vllm-openai:v0.11.0 --model google/gemma-4-12B-it",
        {"vllm_version": None, "image": None},
        ("v0.11.0", "record-release"),
    ),
    "TPU": Published(
        "docker run --privileged --net host --shm-size=16G vllm/vllm-tpu:v0.32.0 vllm serve google/gemma-4-31B-it"
        " --tensor-parallel-size 8 --max-model-len 16384",
        {"accelerator": "v6e-8", "model": "gemma-4-31b-it", "vllm.max-model-len": 16384},
        ("8 chips",),
    ),
    "Google's guide": Published(
        "gcloud beta run deploy gemma-service \\\n"
        '  --image "us-docker.pkg.dev/vertex-ai/vertex-vision-model-garden-dockers/pytorch-vllm-serve:gemma4" \\\n'
        "  --project PROJECT_ID --region europe-west4 --execution-environment gen2 --no-allow-unauthenticated \\\n"
        "  --cpu 20 --memory 80Gi --gpu 1 --gpu-type nvidia-rtx-pro-6000 --no-gpu-zonal-redundancy \\\n"
        "  --no-cpu-throttling --max-instances 3 --concurrency 64 --timeout 600 \\\n"
        "  --startup-probe tcpSocket.port=8080,initialDelaySeconds=240,failureThreshold=1,timeoutSeconds=240,"
        "periodSeconds=240 --command vllm \\\n"
        '  --args "serve,google/gemma-4-31B-it,--enable-chunked-prefill,--dtype=bfloat16,--max-num-seqs=64"',
        {
            "model": "gemma-4-31b-it",
            "accelerator": "nvidia-rtx-pro-6000",
            "service_name": "gemma-service",
            "image.options": "0.32.0",
            "resources": None,
            "weights.loading": "hub",
            "scaling.max_instances": 3,
            "scaling.request_timeout_seconds": 600,
            "probe.kind": "tcp",
            "vllm.max-num-seqs": 64,
            "vllm.dtype": None,
        },
        ("not one of vLLM's own images",),
    ),
    "a bucket, the streamer and a network": Published(
        "export MODEL_NAME=google/gemma-4-31B-it\nexport BUCKET=acme-cache\nexport SA=vllm-sa\n"
        "gcloud run deploy gemma-rtx --image=vllm/vllm-openai:v0.32.0 --region=europe-west4 --project=acme-llm \\\n"
        "  --service-account=${SA}@acme-llm.iam.gserviceaccount.com --gpu=1 --gpu-type=nvidia-rtx-pro-6000 \\\n"
        "  --no-gpu-zonal-redundancy --cpu=20 --memory=80Gi --network=llm --subnet=llm --vpc-egress=all-traffic \\\n"
        "  --set-secrets=HF_TOKEN=hf-secret:3 --min=1 --max=1 --concurrency=32 --timeout=3600 \\\n"
        '  --args="^;^--model=gs://${BUCKET}/${MODEL_NAME};--load-format=runai_streamer;--max-model-len=32768;'
        '--limit-mm-per-prompt={\\"image\\": 2, \\"video\\": 0}"',
        {
            "weights.bucket": "acme-cache",
            "weights.path": "google/gemma-4-31B-it",
            "weights.loading": "runai-streamer",
            "vpc": {"network": "llm", "subnetwork": "llm", "egress": "all-traffic"},
            "vllm.load-format": None,
            "vllm.limit-mm-per-prompt": {"image": 2, "video": 0},
            "scaling.min_instances": 1,
            "secrets": None,
        },
        ("vllm-sa@acme-llm",),
    ),
    "L4 with a mounted bucket": Published(
        "gcloud run deploy vllm --image us-east4-docker.pkg.dev/acme-llm/own/vllm-gemma:v1 --region us-east4 --gpu 1"
        " --gpu-type nvidia-l4 --cpu 8 --memory 32Gi --port 8000 --allow-unauthenticated --min-instances 0"
        " --add-volume=name=w,type=cloud-storage,bucket=acme-w --add-volume-mount=volume=w,mount-path=/mnt/gcs"
        " --set-env-vars=^@^VLLM_LOGGING_LEVEL=DEBUG@TAGS=a,b --command=vllm"
        " --args=serve,/mnt/gcs/gemma-4-12B-it-qat-w4a16-ct,--max-model-len,8192"
        ",--spec-model,/mnt/gcs/draft,--lora-modules,a=/mnt/gcs/a",
        {
            "access": {"public": True},
            "resources": {"cpu": 8, "memory": "32Gi"},
            "variables": {"VLLM_LOGGING_LEVEL": "DEBUG", "TAGS": "a,b"},
            "vllm.spec-model": "/mnt/models/draft",
            "vllm.lora-modules": "a=/mnt/models/a",
            "scaling.zonal_redundancy": True,
            "weights": {"bucket": "acme-w"},
        },
        ("/mnt/gcs", "reserves GPUs in another zone"),
    ),
    "a script with two commands": Published(
        "gcloud config set project acme\ngcloud run deploy a --image vllm/vllm-openai:v0.32.0 --gpu-type nvidia-l4"
        " --gpu 1 --region us-east4 --no-gpu-zonal-redundancy --args=--model=google/gemma-4-E2B-it && "
        "gcloud run deploy b --image vllm/vllm-openai:v0.32.0 --args=--model=google/gemma-4-E4B-it",
        {"service_name": "a", "model": "gemma-4-e2b-it"},
        ("gcloud run deploy: b",),
    ),
    "an image that reads a variable": Published(
        "gcloud run deploy own --image europe-west4-docker.pkg.dev/acme-llm/own/vllm-server:v2 --region europe-west4"
        " --gpu 1 --gpu-type nvidia-l4 --no-gpu-zonal-redundancy --set-env-vars MODEL_NAME=google/gemma-4-E2B-it",
        {"model": "gemma-4-e2b-it", "image.repository": "acme-llm/own/vllm-server", "image.tag": "v2"},
        ("that of the variable MODEL_NAME",),
    ),
    "a file of options": Published(
        "vllm serve google/gemma-4-E2B-it --config config.yaml --seed 1",
        {"vllm.config": None, "vllm.seed": 1},
        ("--config: config.yaml: the options in that file were not read",),
    ),
    "a script that deploys": Published(
        "#!/bin/bash\nset -euo pipefail\nif [ -f .env ]; then\n  source .env\nfi\n"
        'PROJECT_ID=$(gcloud config get-value project)\nREGION=${REGION:-"us-east4"}\n'
        'MODEL=${1:-"google/gemma-4-E2B-it"}\n'
        'SA=${SA:-"sa@${PROJECT_ID}.iam.gserviceaccount.com"}\ncat > note.txt <<EOF\nvllm serve it\'s\nEOF\n'
        'echo "Deploying to ${REGION}"\ndeploy() {\n  gcloud run deploy chat --project "$PROJECT_ID" \\\n'
        '    --region "$REGION" \\\n'
        '    --image vllm/vllm-openai:v0.32.0 --service-account "$SA" --gpu 1 --gpu-type nvidia-l4 --cpu 4 \\\n'
        '    --memory 16Gi --no-gpu-zonal-redundancy --args="--model=${MODEL},--max-model-len=8192"\n}\ndeploy\n',
        {"region": "us-east4", "model": "gemma-4-e2b-it", "vllm.max-model-len": 8192, "service_name": "chat"},
        ("source: .env", "--project: $(gcloud config get-value project)"),
    ),
    "a variable that nobody set": Published(
        "gcloud run deploy $SERVICE --image vllm/vllm-openai:v0.32.0 --region $REGION --project <PROJECT> --gpu 1"
        " --no-gpu-zonal-redundancy --args=--model=google/gemma-4-E2B-it",
        {"accelerator": "nvidia-l4", "model": "gemma-4-e2b-it", "service_name": None},
        ("SERVICE: ${SERVICE}", "--region: ${REGION}", "--project: <PROJECT>"),
    ),
}
