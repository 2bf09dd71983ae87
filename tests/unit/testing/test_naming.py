"""What a test may write, and the one sentence it gets for everything else."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode
from penstock.protocol.apis import ApiKey
from penstock.testing.naming import api_of, check_count, check_seconds, check_times, code_of


@pytest.mark.parametrize("word", ["Produce", "produce", "PRODUCE", "ProduceRequest", 0, ApiKey.PRODUCE])
def test_an_api_has_a_name_and_a_key(word: str | int) -> None:
    assert api_of(word) is ApiKey.PRODUCE


def test_an_api_of_several_words() -> None:
    assert api_of("init_producer_id") is api_of("InitProducerId") is ApiKey.INIT_PRODUCER_ID


def test_a_code_has_a_name_and_a_number() -> None:
    assert code_of("not_leader_or_follower") is code_of(6) is code_of("NOT_LEADER_OR_FOLLOWER")
    assert code_of(-1) is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (lambda: api_of("Prodce"), "there is no API 'Prodce' in this broker; did you mean 'Produce'?"),
        (lambda: api_of("???"), "there is no API '\\?\\?\\?' in this broker; they are "),
        (lambda: api_of(9999), "API key 9999 is not served by this broker; the keys are "),
        (lambda: api_of(None), "None is no API; give its name"),  # type: ignore[arg-type]
        (lambda: code_of("NOT_LEADER"), "there is no error code 'NOT_LEADER' in Kafka; did you mean 'NO"),
        (lambda: code_of(4000), "there is no error code 4000 in Kafka; they go from -1 to 133"),
        (lambda: code_of(0), "NONE is no error; leave the fault away"),
        (lambda: code_of(True), "True is no error code; give its name"),
        (lambda: check_times(0), "times=0 is not possible; give 1 or more, or None"),
        (lambda: check_times(-3), "times=-3 is not possible"),
        (lambda: check_count("after", -1), "after=-1 is not possible; give 0 or more"),
        (lambda: check_seconds(-0.5), "seconds=-0.5 is not possible; give 0 or more, or use drop"),
        (lambda: check_seconds(float("nan")), "seconds=nan is not possible"),
    ],
)
def test_anything_else_is_refused_with_the_remedy(bad: object, sentence: str) -> None:
    assert callable(bad)
    with pytest.raises(ValueError, match=sentence):
        bad()


def test_none_means_until_it_is_undone() -> None:
    assert check_times(None) is None


def test_the_highest_code_is_the_one_that_the_sentence_names() -> None:
    assert max(ErrorCode) == 133
