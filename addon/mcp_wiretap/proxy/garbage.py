"""How often Python looks for cyclic garbage. What is retained of the traffic is large and lives long, and with the default
every few requests pay for a walk through it."""

import gc

# Objects made since the last look; the default is 700 or 2,000, depending on the Python.
LIVE = 10_000  # a look may take some milliseconds, in which nothing passes
AT_ONCE = 50_000  # nobody waits for a single flow


def collect_less(young: int) -> None:
    """Look for cyclic garbage less often, in this whole process. A threshold that is higher already, or off (0), stays."""
    now, *older = gc.get_threshold()
    if 0 < now < young:
        gc.set_threshold(young, *older)
