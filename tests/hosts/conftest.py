"""Hosts for the tests of this folder. Where they cannot be made, every test is skipped and says why."""

from __future__ import annotations

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("tests/support", "tests/python"):
    sys.path.insert(0, str(ROOT / folder))

import hosts  # noqa: E402  (found through the path above)


@pytest.fixture(scope="session")
def two_hosts():
    """Two hosts with a Slurm on them, for tests that break nothing."""
    if reason := hosts.why_no_hosts():
        pytest.skip(reason)
    with hosts.Hosts(2) as building:
        building.slurm = hosts.Slurm(building)
        yield building


@pytest.fixture
def breakable():
    """Two hosts of this test alone, for those that cut cables."""
    if reason := hosts.why_no_hosts():
        pytest.skip(reason)
    with hosts.Hosts(2) as building:
        yield building
