from __future__ import annotations

import secrets
import tempfile
from pathlib import Path
from typing import Iterator

import pytest

from node import Node


@pytest.fixture(scope="session")
def directory() -> Iterator[Path]:
    # Not pytest's own, whose path is too long for the sockets in a node's home.
    with tempfile.TemporaryDirectory(prefix="sandpiper-py-") as path:
        yield Path(path)


@pytest.fixture(scope="session")
def node(directory: Path) -> Iterator[Node]:
    with Node(directory / "one", settings_in(directory / "store")) as started:
        yield started


@pytest.fixture
def cluster(directory: Path) -> Iterator[list[Node]]:
    """Two nodes with one store. The first creates the key that both accept."""
    name = secrets.token_hex(4)
    settings = settings_in(directory / f"{name}-store")
    with Node(directory / f"{name}-a", settings) as first, Node(directory / f"{name}-b", settings) as second:
        (second.home / "api-key").write_text(first.api_key)
        yield [first, second]


def settings_in(store: Path) -> dict[str, str]:
    return {
        "SANDPIPER_STORE": f"file://{store}",
        "SANDPIPER_CLUSTER_SECRET": secrets.token_urlsafe(24),
        "SANDPIPER_LEASE_MS": "3000",
        "SANDPIPER_MAX_SKEW_MS": "200",
    }
