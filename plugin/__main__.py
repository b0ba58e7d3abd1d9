"""What the engine runs in this folder: the provider of the package."""

from bezel_plugin.serve import main

if __name__ == "__main__":
    main()
