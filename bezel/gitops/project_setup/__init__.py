"""Set-up of a project for pipelines: runs the program `bootstrap`, and keeps its state where the team finds it.

Owns where that state is (a folder of this machine until the state bucket exists, then the bucket), the order of the
steps, and how a killed run is continued. Leaves out what is created (`bootstrap`).
"""
