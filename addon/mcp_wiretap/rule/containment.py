"""What the code of others may raise, and how that is told. A rule file may call sys.exit; a rule may be written for asyncio."""

import signal

MOST_TOLD = 500  # characters of an error's text


def is_interrupt(error: BaseException) -> bool:
    """Whether an error is a person's Ctrl-C. It can be one only where Python's own handler makes an exception of the signal, as
    in a command; where an event loop handles it, as in mitmproxy, somebody's code raised a KeyboardInterrupt of its own."""
    return isinstance(error, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def told(error: BaseException) -> str:
    """An error as its type and its text, even where making the text fails."""
    try:
        text = str(error)
    except BaseException as failed:
        if is_interrupt(failed):
            raise
        text = f"(making its text raised {type(failed).__name__})"
    return f"{type(error).__name__}: {text if len(text) <= MOST_TOLD else text[:MOST_TOLD] + '…'}"
