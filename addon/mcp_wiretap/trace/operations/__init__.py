"""Follows what a client wanted over several exchanges: MRTR rounds, tasks, reissued requests, progress."""
