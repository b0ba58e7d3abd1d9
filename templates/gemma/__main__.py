"""The program: settings become a plan, the plan becomes resources, the resources give the outputs."""

from bezel_stacks.program import run

run()
