"""Findings and traces made into text, JSON, JSON lines, SARIF, JUnit and HTML. Touches no file: it writes to what it is given."""
