"""The live stream of a workspace: hints at its own tasks."""

import pytest

from tests.timeline.streams import in_thread, open_stream, write
from timeline.ids import new_id

pytestmark = pytest.mark.asyncio


async def test_it_hints_at_tasks_with_news_and_tells_no_text(stream, workspace_id, connect):
    foreign = await in_thread(open_stream, new_id())
    await in_thread(write, stream, "before")

    async with connect("/ws/workspaces/lab/") as client:
        await in_thread(write, foreign, "elsewhere")
        await in_thread(write, stream, "one", "two")
        assert await client.frame() == {"type": "changed", "task_id": str(stream), "seq": 3}
        young = await in_thread(open_stream, workspace_id)
        await in_thread(write, young, "new")
        assert await client.frame() == {"type": "changed", "task_id": str(young), "seq": 1}


async def test_what_comes_between_the_opening_and_the_first_look_is_hinted(stream, connect):
    for number in range(1, 6):
        async with connect("/ws/workspaces/lab/") as client:
            await in_thread(write, stream, "at once")
            assert (await client.frame())["seq"] == number


@pytest.mark.parametrize(("seen", "code"), [("forbidden", 4403), ("unknown", 4404)])
async def test_who_may_not_see_it_is_told_by_the_code(transactional_db, connect, door, seen, code):
    door.seen = seen

    async with connect("/ws/workspaces/lab/") as client:
        assert await client.closed_with() == code
