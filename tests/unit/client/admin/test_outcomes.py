"""One failure is raised as itself, several together, and nothing that was asked for goes missing."""

from __future__ import annotations

import pickle

import pytest

from penstock.base.errors import ErrorCode
from penstock.client.admin.errors import AdminErrors, InvalidInput, Outcome, failure
from penstock.client.errors import ClientError, UnknownTopicOrPartition


def test_all_done_gives_the_results() -> None:
    outcome: Outcome[str, int] = Outcome()
    outcome.add("a", 1, 0, "topic a")
    assert outcome.result() == {"a": 1}


def test_the_one_thing_that_was_asked_for_fails_as_itself() -> None:
    outcome: Outcome[str, int] = Outcome()
    outcome.add("a", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic a")
    with pytest.raises(UnknownTopicOrPartition, match="topic a: the topic or partition does not exist"):
        outcome.result()


def test_some_of_several_fail_together_with_what_succeeded() -> None:
    outcome: Outcome[str, int] = Outcome()
    outcome.add("a", 1, 0, "topic a")
    outcome.add("b", 2, ErrorCode.INVALID_CONFIG, "topic b", "no such key")
    with pytest.raises(AdminErrors, match="1 of 2 failed: topic b: no such key") as caught:
        outcome.result()
    assert "no such key (correct it). The other 1 are done: ask again for those in `failures` only" in str(caught.value)
    assert caught.value.successes == {"a": 1}
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    assert not caught.value.retriable


def test_many_failures_are_not_all_told() -> None:
    errors = {number: failure(f"topic {number}", 3) for number in range(9)}
    assert AdminErrors(errors, {}).message.endswith("; and 4 more")
    assert AdminErrors(errors, {}).retriable


def test_what_is_not_answered_has_failed() -> None:
    outcome: Outcome[str, int] = Outcome()
    outcome.missing({"a": "topic a"})
    with pytest.raises(ClientError, match="topic a: the broker's answer does not mention it"):
        outcome.result()


def test_a_code_of_a_newer_broker_is_told() -> None:
    assert "error code 999" in failure("topic a", 999).message


def test_they_travel_between_processes() -> None:
    errors = AdminErrors({"a": failure("topic a", 3)}, {"b": 1})
    copy = pickle.loads(pickle.dumps(errors))
    assert (copy.message, copy.code, copy.successes) == (errors.message, errors.code, {"b": 1})
    assert isinstance(copy.failures["a"], UnknownTopicOrPartition)
    assert isinstance(pickle.loads(pickle.dumps(InvalidInput("no"))), ValueError)
