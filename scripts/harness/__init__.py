"""What stands behind the commands in scripts/: set-up, the demonstration, the benchmark, the screenshot.

It starts and stops processes and measures them from outside. It must not import the addon: what it shows is what a user
gets from the installed `mcp-wiretap` command.
"""
