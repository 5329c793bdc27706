"""What each subcommand of `mcp-wiretap` does. `cli` reads the command line and imports the one it needs."""


class Refused(Exception):
    """The command cannot be done as asked. The message says what is wrong, where, and what to do; the exit status is 2."""
