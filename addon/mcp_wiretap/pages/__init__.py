"""What the inspector's pages show, as plain data: pure functions from a trace to rows and details, page by page.

`Traces` holds the state: it follows what the Inspectors say and keeps lists and counts, so that no page ever walks over all
flows on the proxy's loop. Everything from the wire is one line or bounded, visible, and masked before it gets in here; who
writes HTML of it has only markup to escape.
"""
