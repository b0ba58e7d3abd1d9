"""The door as a program: `python -m bezel_door`, or its archive."""

from bezel_door.main import main

main()
