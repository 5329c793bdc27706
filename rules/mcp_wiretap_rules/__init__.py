"""The built-in rules: one module a family (OAU: one a subject), one function a rule, its explanation beside it."""

from mcp_wiretap_rules.left_out import LEFT_OUT

__all__ = ["LEFT_OUT"]
