"""What leaves the house: recordings redacted, and written in the formats of other tools. Knows no mitmproxy."""
