"""Arguments that several operations have, each described once."""

from typing import Annotated

from pydantic import Field

from bezel.operations.arguments.model import Option, Reach, Word

Stack = Annotated[str, Reach.INSIDE, Field(description="name of the stack")]
OptionalStack = Annotated[str | None, Reach.INSIDE, Word()]
ProjectStack = Annotated[
    str | None,
    Reach.INSIDE,
    Option("STACK"),
    Field(max_length=100, description="stack whose project it is (default: the environment's)"),
]
Wait = Annotated[str, Reach.INSIDE, Option("TIME"), Field(description="longest wait for another run")]
Wake = Annotated[bool, Reach.INSIDE, Field(description="may start an instance; costs money")]
Region = Annotated[str, Field(pattern=r"^[a-z]+-[a-z]+[0-9]+$", max_length=40, examples=["us-east4"])]
ReadRegion = Annotated[
    Region | None,
    Reach.INSIDE,
    Option("REGION"),
    Field(description="region to read (default: the first)"),
]
AskedRegion = Annotated[
    Region | None,
    Reach.INSIDE,
    Option("REGION"),
    Field(description="region to ask (default: the address, else the first)"),
]
Zone = Annotated[str, Field(pattern=r"^[a-z]+-[a-z]+[0-9]+-[a-z]$", max_length=40, examples=["us-east5-a"])]
Project = Annotated[
    str | None,
    Reach.BEYOND,
    Option("ID"),
    Field(max_length=100, description="cloud project (default: the environment's)"),
]
