"""Writes recordings in the formats of other tools. Knows no mitmproxy."""

EXTRA = "in the clone: pip install '.[otlp]' (or uv tool install '.[otlp]')"  # what brings the OpenTelemetry SDK
