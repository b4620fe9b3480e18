"""The example of README.md, run as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from node import Node


def test_the_example_prints_what_it_promises(
    node: Node, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SANDPIPER_URL", node.url)
    monkeypatch.setenv("SANDPIPER_API_KEY", node.api_key)
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    found = re.search(r"```python\n(.*?)```", readme, re.DOTALL)
    assert found is not None
    exec(found[1], {})
    printed = capsys.readouterr().out
    assert re.sub("stdout ", "", printed) == "0\n1\n2\n3\nkept\n"
