"""The schemas: what each column says of itself, and names that moved."""

from __future__ import annotations

import pytest

from agent_r1 import schemas, tables


def test_every_column_says_what_it_holds_and_every_nullable_one_what_null_means():
    for schema in schemas.SCHEMAS.values():
        for field in schema:
            assert field.metadata[b"about"]
            assert (b"null" in field.metadata) == field.nullable


@pytest.mark.parametrize("name", tables.__all__)
def test_the_functions_that_moved_to_tables_are_still_found_here(name):
    assert getattr(schemas, name) is getattr(tables, name)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'conforms'"):
        schemas.conforms  # noqa: B018
