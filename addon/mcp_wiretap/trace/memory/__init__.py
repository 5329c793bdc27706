"""What the trace retains, each with a bound: sessions, conversations, open requests, recent entries."""
