"""Resumable copies of model files into a bucket, verified by size and hash, and listings of stored models.

Owns the Hugging Face hub as a source, Cloud Storage as source and destination, and the list of files that a complete
model needs. Leaves out the choice of model and bucket (`bezel.planner`), and the command (`bezel.cli.weights`).

No library does it: huggingface_hub downloads whole files to a disk first (a 58 GB model needs 58 GB of it) and stores
no upload session; google-cloud-storage and obstore write a stream but cannot resume an upload that another process
began. The package needs only a few requests of two documented HTTP APIs, sent by the program's own HTTP client.
"""
