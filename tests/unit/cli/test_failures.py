"""The sentence for a failure has its remedy once."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.cli.failures import REMEDIES, sentences


def test_a_brokers_own_words_get_the_remedy() -> None:
    error = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "topic t: Topic authorization failed.")
    assert sentences(error, REMEDIES) == ["topic t: Topic authorization failed (ask for an ACL)"]


def test_a_sentence_that_has_the_remedy_is_left_alone() -> None:
    text = "topic t: the user may not do this with the topic: ask for an ACL"
    assert sentences(KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, text), REMEDIES) == [text]


def test_a_key_that_is_none_gets_the_way_to_the_keys() -> None:
    (said,) = sentences(KafkaError(ErrorCode.INVALID_CONFIG, "topic t: Unknown topic config name: x"), REMEDIES)
    assert said.startswith("topic t: Unknown topic config name: x (`penstock configs describe")
