"""What a client and a server that were recorded on a legacy revision must change for 2026-07-28, from what they really used."""
