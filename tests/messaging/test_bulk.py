"""Bulk: one remedy for many messages, in order, with a dry run (SPEC §5.2, docs/wire.md)."""

import pytest

from cowork.models import OutboxEntry, Task
from messaging import releasing, remedies
from messaging.models import Receipt
from tests.build import fresh
from tests.provisioned import problem, signed_in
from timeline.ids import new_id
from timeline.models import AuditEntry, Event
from timeline.refusals import DatabaseBusy, Forbidden


@pytest.fixture
def olga(build, otto):
    """Otto, an operator, at his browser."""
    return signed_in("otto")


def held(build, sender, recipient, *texts):
    return [
        build.a_receipt("quarantined", sender=sender, recipient=recipient, text=text)
        for text in texts
    ]


def ids(*rows):
    return [str(row.id) for row in rows]


def texts_in_order(task):
    rows = Receipt.objects.queued().filter(recipient=task).select_related("body")
    return [row.body.text for row in rows.order_by("sequence")]


def everything():
    """All that a step could change."""
    return [
        list(model.objects.order_by("pk").values())
        for model in (Receipt, Task, Event, AuditEntry, OutboxEntry)
    ]


def test_several_released_together_keep_their_old_order(build, olga, pilot, cook, scout):
    first, second, third = held(build, pilot, cook, "one", "two", "three")
    other = held(build, pilot, scout, "elsewhere")[0]
    build.send(pilot, cook, "younger")

    answer = olga.post(
        "receipts/bulk", action="release", ids=ids(third, other, first, second), note="All is well."
    )

    assert answer.status_code == 200
    assert answer.json()["dry_run"] is False
    assert texts_in_order(cook) == ["younger", "one", "two", "three"]
    assert texts_in_order(scout) == ["elsewhere"]
    rows = {row["id"]: row for row in answer.json()["results"]}
    assert set(rows) == set(ids(first, second, third, other))
    assert rows[str(first.id)]["ok"] is True
    shown = olga.get(f"receipts/{first.id}").json()
    assert rows[str(first.id)]["receipt"] == {
        name: value for name, value in shown.items() if name not in ("message", "transitions")
    }
    assert (shown["attempt"], shown["released_by"]) == (2, "otto")


def test_several_retried_together_keep_their_old_order(build, olga, pilot, cook):
    texts = ["one", "two", "three"]
    rows = [build.a_receipt("failed", sender=pilot, recipient=cook, text=text) for text in texts]

    olga.post("receipts/bulk", action="retry", ids=ids(*reversed(rows)))

    assert texts_in_order(cook) == texts


def test_each_step_is_audited_with_its_reason(build, olga, pilot, cook):
    rows = held(build, pilot, cook, "one", "two")

    olga.post("receipts/bulk", action="discard", ids=ids(*rows), note="Old.")

    told = AuditEntry.objects.filter(action="discard")
    assert {(entry.target_id, entry.note, entry.actor_label) for entry in told} == {
        (row_id, "Old.", "otto") for row_id in ids(*rows)
    }


def test_one_that_is_refused_leaves_the_others(build, olga, pilot, cook):
    good = held(build, pilot, cook, "good")[0]
    queued = build.send(pilot, cook, "queued").receipt
    closed = held(build, pilot, cook, "closed")[0]
    olga.post(f"receipts/{closed.id}/discard")
    unknown = new_id()

    answer = olga.post(
        "receipts/bulk", action="release", ids=[*ids(good, queued, closed), str(unknown)]
    )

    told = {row["id"]: (row["ok"], row["code"]) for row in answer.json()["results"]}
    assert told == {
        str(good.id): (True, None),
        str(queued.id): (False, "INVALID_TRANSITION"),
        str(closed.id): (False, "RECEIPT_CLOSED"),
        str(unknown): (False, "NOT_FOUND"),
    }
    [refused] = [row for row in answer.json()["results"] if row["id"] == str(queued.id)]
    assert refused["receipt"] is None
    assert "queued" in refused["detail"]


@pytest.mark.parametrize("remedy", list(remedies.REMEDIES))
def test_a_dry_run_changes_nothing_and_says_what_would_be(
    build, olga, settings, pilot, cook, scout, remedy
):
    settings.COWORK_MAX_HOPS = 0  # the loop guard holds every agent's message
    queued = build.send(pilot, cook, "queued").receipt
    quarantined = held(build, pilot, cook, "held")[0]
    failed = build.a_receipt("failed", sender=build.a_person("nina"), recipient=scout)
    body = {"action": remedy, "ids": ids(queued, quarantined, failed)}
    before = everything()

    rehearsed = olga.post("receipts/bulk", **body, dry_run=True).json()

    assert everything() == before
    assert rehearsed["dry_run"] is True
    played = olga.post("receipts/bulk", **body).json()
    assert any(row["ok"] for row in played["results"])
    assert everything() != before
    assert [outline(row) for row in rehearsed["results"]] == [
        outline(row) for row in played["results"]
    ]


def outline(row):
    """An outcome without the times, which differ between two calls."""
    facts = row["receipt"] or {}
    timeless = {name: facts[name] for name in facts if not name.endswith("_at")}
    return {**row, "receipt": timeless}


def test_a_filter_finds_what_the_remedy_is_for(build, olga, pilot, cook, scout):
    mine = held(build, pilot, cook, "one", "two")
    build.send(pilot, cook, "queued")
    elsewhere = held(build, pilot, scout, "three")[0]

    answer = olga.post("receipts/bulk", action="release", filter={"recipient": str(cook.id)})

    assert [row["id"] for row in answer.json()["results"]] == ids(*mine)
    assert fresh(elsewhere).status == "quarantined"


def test_what_the_loop_guard_holds_is_let_go(build, olga, settings, pilot, cook):
    settings.COWORK_MAX_HOPS = 0
    receipt = build.send(pilot, cook).receipt
    assert build.claim(cook) is None

    answer = olga.post("receipts/bulk", action="let_go", filter={"delivery_status": "queued"})

    assert [row["ok"] for row in answer.json()["results"]] == [True]
    assert build.claimed(cook).inputs == [receipt]


def test_what_is_released_is_woken(build, olga, pilot, cook):
    rows = held(build, pilot, cook, "one", "two")
    OutboxEntry.objects.all().delete()

    olga.post("receipts/bulk", action="release", ids=ids(*rows))

    assert OutboxEntry.objects.filter(kind="wake-task", target=cook.id).count() == 1


def test_what_the_database_keeps_from_one_recipient_reaches_the_others(
    build, clock, otto, pilot, cook, scout, monkeypatch
):
    mine, other = held(build, pilot, cook, "one")[0], held(build, pilot, scout, "two")[0]
    locked_together = remedies.locked_together

    def busy_for_cook(recipient_id, rows):
        if recipient_id == cook.id:
            raise DatabaseBusy
        return locked_together(recipient_id, rows)

    monkeypatch.setattr(remedies, "locked_together", busy_for_cook)

    found = releasing.bulk(
        Receipt.objects.all(),
        remedy="release",
        by=build.principal(otto),
        note="",
        is_dry_run=False,
        clock=clock,
    )

    codes = {row.receipt_id: row.refusal and row.refusal.code for row in found}
    assert codes == {mine.id: "DATABASE_BUSY", other.id: None}
    assert (fresh(mine).status, fresh(other).status) == ("quarantined", "queued")


def test_only_operators_do_it(build, clock, pilot, cook, ops):
    row = held(build, pilot, cook, "one")[0]
    viewer = build.principal(build.a_person(role="viewer"))

    for caller in (build.key_of(pilot), build.key_of(cook), ops, viewer):
        with pytest.raises(Forbidden):
            releasing.bulk(
                Receipt.objects.all(),
                remedy="discard",
                by=caller,
                note="",
                is_dry_run=True,
                clock=clock,
            )
    assert fresh(row).closed_at is None


def test_a_viewer_and_a_service_are_refused_over_the_wire(lab):
    for caller in (lab.viewer, lab.ops, lab.agent("atlas")):
        answer = caller.post("receipts/bulk", action="retry", ids=[str(new_id())])
        assert problem(answer) == (403, "FORBIDDEN")


def test_what_belongs_to_another_workspace_is_not_found(lab, other_lab):
    atlas = other_lab.agent("atlas")
    sent = atlas.post("send_agent_message", bot="forge", message="hello").json()

    answer = lab.operator.post("receipts/bulk", action="quarantine", ids=[sent["receipt_id"]])

    assert [row["code"] for row in answer.json()["results"]] == ["NOT_FOUND"]
    assert Receipt.objects.get().status == "queued"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": "retry"},
        {"action": "withdraw", "ids": ["ID"]},
        {"action": "retry", "ids": []},
        {"action": "retry", "ids": ["nonsense"]},
        {"action": "retry", "ids": "ID"},
        {"action": "retry", "ids": ["ID"] * 1001},
        {"action": "retry", "filter": {}},
        {"action": "retry", "filter": "all"},
        {"action": "retry", "filter": {"colour": "red"}},
        {"action": "retry", "filter": {"recipient": "nonsense"}},
        {"action": "retry", "filter": {"delivery_status": "lost"}},
        {"action": "retry", "filter": {"message_id": ["m"]}},
        {"action": "retry", "ids": ["ID"], "filter": {"message_id": "m"}},
        {"action": "retry", "ids": ["ID"], "dry_run": "yes"},
        {"action": "retry", "ids": ["ID"], "note": "x" * 1001},
        {"action": "retry", "ids": ["ID"], "note": None},
        {"action": "retry", "ids": ["ID"], "force": True},
    ],
)
def test_an_unfit_request_is_refused(olga, body):
    if isinstance(body.get("ids"), list):
        body = {**body, "ids": [str(new_id()) if row == "ID" else row for row in body["ids"]]}

    assert problem(olga.post("receipts/bulk", **body)) == (400, "INVALID_REQUEST")
