"""What the commands do. Each is imported when it runs, so that `--help` loads nothing heavy."""
