"""A scenario as named steps, one printed line each. A step that does not end as expected fails the scenario."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

Step = Callable[[], Awaitable[str]]
STEP_SECONDS = 30
"""No step waits longer; a hung server is a failed step, not a hung client."""


class Unexpected(AssertionError):
    """Something did not come as the scenario expects it."""


def expect(condition: object, what: str) -> None:
    """Fail the step unless `condition` holds."""
    if not condition:
        raise Unexpected(what)


@dataclass
class Scenario:
    """Runs steps in order and keeps count."""

    name: str
    passed: int = 0
    failed: list[str] = field(default_factory=list)

    async def step(self, title: str, run: Step) -> None:
        """Run one step; its return value is what the printed line says."""
        try:
            async with asyncio.timeout(STEP_SECONDS):
                said = await run()
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise
        except BaseException as error:
            self.failed.append(title)
            print(f"FAIL  {title}: {_told(error)}", flush=True)
            return
        self.passed += 1
        print(f"ok    {title}: {said}", flush=True)

    @property
    def status(self) -> int:
        """The exit status."""
        return 1 if self.failed else 0


def _told(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return "".join(traceback.format_exception_only(error)).strip().replace("\n", " ")
