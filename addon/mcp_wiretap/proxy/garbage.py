"""How often Python looks for cyclic garbage. What is retained of the traffic is large and lives long, and with the default
every few requests pay for a walk through it."""

import gc

YOUNG = 10_000  # objects made since the last look; the default is 700 or 2,000, depending on the Python


def collect_less() -> None:
    """Look for cyclic garbage less often, in this whole process. A threshold that is higher already, or off (0), stays."""
    young, *older = gc.get_threshold()
    if 0 < young < YOUNG:
        gc.set_threshold(YOUNG, *older)
