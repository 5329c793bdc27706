"""Pure functions over JSON Schema and header annotations. Knows no message and no exchange."""
