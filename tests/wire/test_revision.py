"""Revisions and eras by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_wiretap.wire.revision import KNOWN, LEGACY, MODERN, error_name, version_kind


def test_every_known_revision_is_of_one_era() -> None:
    assert set(KNOWN) == LEGACY | MODERN
    assert not LEGACY & MODERN
    assert "2026-07-28" in MODERN and "2025-11-25" in LEGACY


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("2026-07-28", "modern"),
        ("2025-11-25", "legacy"),
        ("2024-11-05", "legacy"),
        ("2026-07-29", "future"),
        ("2999-12-31", "future"),
        ("2026-07-27", "foreign"),
        ("2025-01-01", "foreign"),
        ("2026-7-28", "foreign"),
        ("2027-13-01", "foreign"),
        ("2026-07-28\n", "foreign"),
        (" 2026-07-28", "foreign"),
        ("\u0662\u0660\u0662\u0667-01-01", "foreign"),
        ("DRAFT-2026-v1", "foreign"),
        ("1.0", "foreign"),
        ("", "foreign"),
    ],
)
def test_versions_are_told_apart_as_they_stand(version: str, kind: str) -> None:
    assert version_kind(version) == kind


@given(st.text(st.characters()))
def test_any_text_is_some_kind_of_version(text: str) -> None:
    assert version_kind(text) in ("modern", "legacy", "future", "foreign")


def test_only_codes_that_are_defined_have_names() -> None:
    assert error_name(-32020) == "HeaderMismatch"
    assert error_name(-32601) == "MethodNotFound"
    assert error_name(-32000) is None and error_name(0) is None and error_name(None) is None
