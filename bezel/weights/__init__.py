"""Model files on their way into a bucket: listed, copied so that a kill costs little, verified by size and hash.

Owns the Hugging Face hub as a source, Cloud Storage as source and destination, and what a whole model consists of.
Leaves out which model a stack wants and where (`bezel.planner`), and the command (`bezel.cli.weights`).

No library does it: huggingface_hub downloads whole files to a disk first (a 58 GB model needs 58 GB of it) and keeps no
session of an upload; google-cloud-storage and obstore write a stream but cannot take up an upload that another process
began. What is left is a few requests of two documented HTTP APIs, through the HTTP client that is here anyway.
"""
