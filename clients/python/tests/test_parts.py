"""The parts that need no node."""

from __future__ import annotations

import pytest

from sandpiper.cookies import CookieJar
from sandpiper.events import Output, Rollback, parse_event
from sandpiper.options import Address, attach_path, create_path
from sandpiper.retry import LONGEST_PAUSE, pause_before


def test_the_jar_keeps_the_newest_cookies_and_forgets_deleted_ones() -> None:
    jar = CookieJar()
    assert jar.header is None
    jar.take(["NODE=a; Path=/; HttpOnly; SameSite=Lax", 'GAESA="x=y"; Expires=Wed, 21 Oct 2099 07:28:00 GMT'])
    assert jar.header == 'NODE=a; GAESA="x=y"'
    jar.take(["NODE=b", "GAESA=; Max-Age=0", "not a cookie"])
    assert jar.header == "NODE=b"


def test_an_event_is_read_with_its_output_and_unknown_fields_are_ignored() -> None:
    event = parse_event('{"event":"stdout","data":"x","execution":"e1","offset":3,"next":"4~r1","dropped":2,"new":1}')
    assert event.execution == "e1"
    assert event.output == Output(stream="stdout", data="x", offset=3, next="4~r1", dropped=2)
    running = parse_event(
        '{"event":"status_update","status":"SANDBOX_RUNNING","rolledBackTo":{"checkpoint":"c","createdAt":"1","at":"2"}}'
    )
    assert running.rolled_back_to == Rollback(checkpoint="c", created_at="1", at="2")
    assert running.output is None


def test_paths_escape_what_the_caller_gives() -> None:
    assert create_path({}) == "/create"
    assert create_path({"memory_mib": 128, "name": "a&b"}) == "/create?memoryMib=128&name=a%26b"
    assert attach_path("a/b", takeover=False, execution=None, offset=None) == "/attach/a%2Fb"
    resumed = attach_path("x", takeover=True, execution="e1", offset="4~r1 ")
    assert resumed == "/attach/x?execution=e1&offset=4~r1+&takeover=true"


def test_the_address_comes_from_the_environment_unless_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDPIPER_URL", "https://sandboxes.example.com/")
    monkeypatch.setenv("SANDPIPER_API_KEY", "key")
    address = Address.of(None, None, 1, 1)
    assert (address.socket_url, address.api_key) == ("wss://sandboxes.example.com", "key")
    assert Address.of("http://other", "mine", 1, 1).socket_url == "ws://other"


def test_pauses_grow_to_a_limit() -> None:
    assert pause_before(0) < pause_before(3) < pause_before(20) <= LONGEST_PAUSE
