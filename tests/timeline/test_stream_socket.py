"""The live stream of a task: exactly the missing events, then live ones."""

import asyncio

import pytest

from tests.timeline.streams import in_thread, write
from timeline import pump, sockets
from timeline.ids import new_id

pytestmark = pytest.mark.asyncio


async def test_what_was_missed_is_replayed_and_then_it_goes_live(stream, connect):
    await in_thread(write, stream, *"abcdef")

    async with connect(f"/ws/tasks/{stream}/?after=2") as client:
        assert await client.frame() == {"type": "ready", "after": 2}
        assert await client.events(4) == [3, 4, 5, 6]
        await in_thread(write, stream, "g")
        assert await client.events(1) == [7]


async def test_without_a_cursor_it_is_live_only(stream, connect):
    await in_thread(write, stream, "a", "b")

    async with connect(f"/ws/tasks/{stream}/") as client:
        assert await client.frame() == {"type": "ready", "after": 2}
        await in_thread(write, stream, "c")
        assert await client.events(1) == [3]


async def test_an_event_is_sent_as_the_list_shows_it(stream, connect):
    await in_thread(write, stream, "größer")

    async with connect(f"/ws/tasks/{stream}/?after=0") as client:
        await client.frame()
        event = (await client.frame())["event"]

    assert event["payload"]["key"] == "größer"
    assert {"seq", "id", "type", "actor", "payload", "created_at"} == set(event)


@pytest.mark.parametrize("cursor", ["3", "9" * 30, "-1", "x", ""])
async def test_a_cursor_that_the_server_does_not_know_starts_over(stream, connect, cursor):
    await in_thread(write, stream, "a", "b")

    async with connect(f"/ws/tasks/{stream}/?after={cursor}") as client:
        assert await client.frame() == {"type": "resync_required", "oldest": 1, "newest": 2}
        await in_thread(write, stream, "c")
        assert await client.events(1) == [3]


async def test_no_gap_and_no_repeat_while_writers_commit(stream, connect):
    async def go_on_writing(name: str) -> None:
        for number in range(20):
            await in_thread(write, stream, f"{name}{number}", f"{name}{number}b")

    writers = [asyncio.create_task(go_on_writing(name)) for name in "abc"]
    for after in (0, 5):
        async with connect(f"/ws/tasks/{stream}/?after={after}") as client:
            if (await client.frame())["type"] == "ready":
                assert await client.events(115) == list(range(after + 1, after + 116))
    await asyncio.gather(*writers)


async def test_a_replay_is_longer_than_one_look(stream, connect, monkeypatch):
    monkeypatch.setattr("timeline.news.BATCH", 3)
    await in_thread(write, stream, *"abcdefgh")

    async with connect(f"/ws/tasks/{stream}/?after=0") as client:
        await client.frame()
        assert await client.events(8) == list(range(1, 9))


async def test_a_client_that_is_slow_gets_everything_and_holds_nobody_up(
    stream, connect, monkeypatch
):
    monkeypatch.setattr(pump, "CAPACITY", 2)
    may_go_on = asyncio.Event()
    original = sockets.Socket.send

    async def send(self, text):
        if self.query["after"] == ["0"]:
            await may_go_on.wait()
        await original(self, text)

    monkeypatch.setattr(sockets.Socket, "send", send)
    async with (
        connect(f"/ws/tasks/{stream}/?after=0") as slow,
        connect(f"/ws/tasks/{stream}/?after=00") as quick,
    ):
        await quick.frame()
        for number in range(10):
            await in_thread(write, stream, f"{number}")
        assert await quick.events(10) == list(range(1, 11))
        may_go_on.set()
        await slow.frame()
        assert await slow.events(10) == list(range(1, 11))


@pytest.mark.parametrize(
    ("known", "seen", "code"),
    [(None, "yes", 4401), ("olga", "forbidden", 4403), ("olga", "unknown", 4404)],
)
async def test_who_may_not_see_it_is_told_by_the_code(stream, connect, door, known, seen, code):
    door.known, door.seen = known, seen

    async with connect(f"/ws/tasks/{stream}/?after=0") as client:
        assert await client.closed_with() == code


@pytest.mark.parametrize(
    ("path", "code"),
    [("/ws/tasks/none/", 4404), ("/ws/elsewhere/", 4404), (f"/ws/tasks/{new_id()}/?token=x", 4401)],
    ids=["no id", "nothing", "a secret in the address"],
)
async def test_other_addresses_are_closed(transactional_db, connect, path, code):
    async with connect(path) as client:
        assert await client.closed_with() == code


@pytest.mark.parametrize(("known", "seen"), [(None, "yes"), ("olga", "forbidden")])
async def test_access_that_is_taken_away_closes_it(stream, connect, door, monkeypatch, known, seen):
    monkeypatch.setattr(sockets.Socket, "BEAT_SECONDS", 0.05)
    async with connect(f"/ws/tasks/{stream}/?after=0") as client:
        assert (await client.frame())["type"] == "ready"
        assert (await client.frame())["type"] == "ping"

        door.known, door.seen = known, seen

        while (output := await client.wire.receive_output(10))["type"] == "websocket.send":
            pass
        assert output["code"] == 4403


async def test_access_is_asked_before_a_replay(stream, connect, door, monkeypatch):
    monkeypatch.setattr(pump, "CAPACITY", 2)
    async with connect(f"/ws/tasks/{stream}/") as client:
        await client.frame()
        door.seen = "forbidden"
        await in_thread(write, stream, "a", "b", "c")

        assert await client.closed_with() == 4403


async def test_a_socket_leaves_nothing_behind(stream, connect):
    async with connect(f"/ws/tasks/{stream}/?after=0") as client:
        await client.frame()
        here = pump.here()
        assert here._streams

    assert not here._streams
    assert here._running is None
