"""Descriptions of models that are not in the catalogue, read from where their files are: a hub, a folder, a bucket.

Owns what is read (configuration, generation defaults, tokenizer, the headers of the weights, never the weights), how
much of it, and why a folder is refused. Leaves what the figures of a model are to bezel_catalog.
"""
