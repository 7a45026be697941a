"""The long poll of a claim: it asks again when there is news, and holds nothing meanwhile."""

import asyncio
import json
import threading
import time

import pytest

from messaging import longpoll, readers
from messaging.longpoll import LongPoll
from tests.timeline.streams import in_thread, open_stream, write
from timeline import pump
from timeline.bridge import Bridge
from timeline.ids import new_id

pytestmark = pytest.mark.asyncio


class View:
    """Stands for the claim view: answers one status after the other, the last one for ever."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.bodies = []
        self.asked = asyncio.Event()
        self.before_answer = None

    async def __call__(self, scope, receive, send):
        message = await receive()
        body = message["body"]
        while message.get("more_body"):
            message = await receive()
            body += message["body"]
        self.bodies.append(body)
        length = dict(scope["headers"]).get(b"content-length")
        assert length is None or int(length) == len(body)
        if self.before_answer is not None:
            await self.before_answer()
        status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"" if status == 204 else b"{}"})
        self.asked.set()


class Call:
    """One request and what comes back."""

    def __init__(self, view, stream, body, *, path=None, pieces=1):
        self.sent = []
        self._incoming: asyncio.Queue[dict[str, object]] = asyncio.Queue()
        size = len(body) // pieces + 1
        for start in range(0, len(body) or 1, size):
            piece, is_last = body[start : start + size], start + size >= len(body)
            message = {"type": "http.request", "body": piece, "more_body": not is_last}
            self._incoming.put_nowait(message)
        scope = {
            "type": "http",
            "method": "POST",
            "path": path or f"/api/v1/tasks/{stream}/turns",
            "headers": [(b"content-length", str(len(body)).encode())],
        }
        self.task = asyncio.create_task(LongPoll(view)(scope, self._incoming.get, self._send))

    async def _send(self, message):
        self.sent.append(message)

    def leave(self):
        self._incoming.put_nowait({"type": "http.disconnect"})

    async def status(self):
        async with asyncio.timeout(10):
            await self.task
        starts = [message for message in self.sent if message["type"] == "http.response.start"]
        assert len(starts) == 1
        return starts[0]["status"]


async def nobody(*_args):
    raise AssertionError("nobody is asked or told")


def claim(wait_seconds=20, **fields):
    return json.dumps({"wait_seconds": wait_seconds, **fields}).encode()


@pytest.fixture
def stream(transactional_db):
    return open_stream(new_id())


async def test_news_of_the_task_make_it_ask_again(stream):
    view = View(204, 201)
    call = Call(view, stream, claim(claim_id="c-1"))
    async with asyncio.timeout(10):
        await view.asked.wait()

    await in_thread(write, stream, "input")

    assert await call.status() == 201
    asked = [json.loads(body) for body in view.bodies]
    assert asked == [{"wait_seconds": 0, "claim_id": "c-1"}] * 2


async def test_news_of_other_tasks_do_not(stream):
    view = View(204)
    other = await in_thread(open_stream, new_id())
    call = Call(view, stream, claim(0.5))
    async with asyncio.timeout(10):
        await view.asked.wait()

    await in_thread(write, other, "input")

    assert await call.status() == 204
    assert len(view.bodies) == 1


async def test_news_that_come_while_it_asks_are_not_missed(stream):
    view = View(204, 201)

    async def news_come():
        view.before_answer = None
        await in_thread(write, stream, "input")

    view.before_answer = news_come

    assert await Call(view, stream, claim()).status() == 201


async def test_news_that_are_no_input_ask_nobody(stream, monkeypatch):
    loop, has_looked = asyncio.get_running_loop(), asyncio.Semaphore(0)

    def stands(*_args, **_named):
        loop.call_soon_threadsafe(has_looked.release)
        return readers.Stands(0, is_worth_a_claim=False, due_in=None)

    monkeypatch.setattr(readers, "stands", stands)
    view = View(204)
    call = Call(view, stream, claim())
    async with asyncio.timeout(10):
        await view.asked.wait()
        await has_looked.acquire()

        await in_thread(write, stream, "a note")

        await has_looked.acquire()
    call.leave()
    await call.task
    assert len(view.bodies) == 1


async def test_what_comes_due_makes_it_ask_again(stream, monkeypatch):
    stands = [
        readers.Stands(0, is_worth_a_claim=False, due_in=0.05),
        readers.Stands(0, is_worth_a_claim=True, due_in=None),
    ]
    monkeypatch.setattr(readers, "stands", lambda *_args, **_named: stands.pop(0))

    assert await Call(View(204, 201), stream, claim()).status() == 201


@pytest.mark.parametrize("status", [200, 201, 401, 409, 503])
async def test_any_other_answer_goes_out_at_once(stream, status):
    view = View(status)

    assert await Call(view, stream, claim()).status() == status
    assert len(view.bodies) == 1


async def test_without_news_the_answer_is_that_there_is_nothing(stream):
    began = time.monotonic()

    assert await Call(View(204), stream, claim(0.3)).status() == 204
    assert 0.25 < time.monotonic() - began < 5


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1]",
        b"{}",
        claim(0),
        claim(-1),
        claim(31),
        claim("5"),
        claim(True),
        claim(None),
        b'{"wait_seconds": NaN}',
        b'{"wait_seconds": 5, "wait_seconds": 6}',
        b'{"wait_seconds": 5, "claim_id": "\xff"}',
        claim(5).decode().encode("utf-16"),
        claim(5, claim_id="x" * longpoll.LARGEST),
    ],
    ids=lambda body: repr(body[:40]),
)
async def test_what_is_no_claim_that_waits_goes_through_untouched(stream, body):
    view = View(204)

    assert await Call(view, stream, body, pieces=3).status() == 204
    assert view.bodies == [body]


@pytest.mark.parametrize(
    "path", ["/api/v1/tasks/none/turns", "/api/v1/turns", f"/api/v1/tasks/{'a' * 36}/turns"]
)
async def test_other_addresses_go_through_untouched(stream, path):
    view = View(204)

    assert await Call(view, stream, claim(), path=path).status() == 204
    assert view.bodies == [claim()]


async def test_a_client_that_leaves_is_not_waited_for(stream):
    view = View(204)
    call = Call(view, stream, claim(30))
    async with asyncio.timeout(10):
        await view.asked.wait()

    call.leave()

    async with asyncio.timeout(5):
        await call.task
    assert call.sent == []
    assert not pump.here()._streams


async def test_a_server_that_stops_answers_at_once(stream):
    view = View(204)
    call = Call(view, stream, claim(30))
    async with asyncio.timeout(10):
        await view.asked.wait()

    call.task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call.task
    assert [message["type"] for message in call.sent] == [
        "http.response.start",
        "http.response.body",
    ]


async def test_many_that_wait_hold_no_threads(stream):
    view = View(204)
    before = threading.active_count()
    calls = [Call(view, stream, claim()) for _ in range(300)]
    async with asyncio.timeout(30):
        while len(view.bodies) < len(calls):
            view.asked.clear()
            await view.asked.wait()

    # The watch of commits, and the few seats of the two desks.
    assert threading.active_count() <= before + 4
    view.answers = [201]
    await in_thread(write, stream, "input")
    assert {await call.status() for call in calls} == {201}


async def test_a_request_that_runs_when_the_server_stops_is_finished():
    is_running, may_end = asyncio.Event(), asyncio.Event()
    sent = []

    async def view(scope, receive, send):
        is_running.set()
        await may_end.wait()
        await send("the answer")

    async def send(message):
        sent.append(message)

    running = asyncio.create_task(Bridge(view)({"headers": []}, nobody, send))
    await is_running.wait()
    running.cancel()
    await asyncio.sleep(0)
    may_end.set()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert sent == ["the answer"]


async def test_a_body_that_comes_without_its_length_gets_one():
    seen: dict[str, object] = {}
    pieces = [
        {"type": "http.request", "body": b"one", "more_body": True},
        {"type": "http.request", "body": b"two", "more_body": False},
    ]

    async def receive():
        return pieces.pop(0)

    async def view(scope, receive, send):
        seen.update(headers=scope["headers"], message=await receive())

    scope = {"headers": [(b"transfer-encoding", b"chunked"), (b"accept", b"*/*")]}
    await Bridge(view)(scope, receive, nobody)

    assert seen["headers"] == [(b"accept", b"*/*"), (b"content-length", b"6")]
    assert seen["message"] == {"type": "http.request", "body": b"onetwo", "more_body": False}
