"""What the inspector costs: measured from outside, against mitmproxy without it, on this machine and in one run."""
