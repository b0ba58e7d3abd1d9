"""The server that admits keys before a service: keys and their use as files, and the door itself.

It imports the standard library alone: it runs as one archive in a stock image of Python.
"""
