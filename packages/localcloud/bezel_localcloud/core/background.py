"""Background tasks: kept until they end, and ended together."""

import asyncio


class BackgroundTasks(set[asyncio.Task[None]]):
    """The running tasks of one owner; a task leaves the set when it ends."""

    def keep(self, task: asyncio.Task[None]) -> None:
        """Keep a task until it ends."""
        self.add(task)
        task.add_done_callback(self.discard)

    def cancel(self) -> None:
        """Cancel all tasks."""
        for task in list(self):
            task.cancel()

    async def end(self) -> None:
        """Cancel all tasks and wait for their end."""
        self.cancel()
        await asyncio.gather(*self, return_exceptions=True)
