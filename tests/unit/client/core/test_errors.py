"""Typed errors: the class for a code, flags, and errors that cross process borders."""

from __future__ import annotations

import copy
import pickle

import pytest

import penstock
from penstock.base.errors import ErrorCode, KafkaError
from penstock.client import errors
from penstock.client.errors import (
    BufferFull,
    ClientError,
    KafkaTimeout,
    LogTruncated,
    OffsetOutOfRange,
    ProducerFenced,
    TransactionError,
    UnknownTopicOrPartition,
    error_for,
    is_retriable,
)


@pytest.mark.parametrize("code", [code for code in ErrorCode if code is not ErrorCode.NONE])
def test_every_code_gives_an_error_with_that_code_and_a_text(code: ErrorCode) -> None:
    error = error_for(code)
    assert isinstance(error, KafkaError)
    assert error.code is code
    assert str(error)
    assert is_retriable(error) in (True, False)


def test_the_most_specific_class() -> None:
    assert type(error_for(3)) is UnknownTopicOrPartition
    assert type(error_for(ErrorCode.INVALID_PRODUCER_EPOCH)) is ProducerFenced
    assert type(error_for(ErrorCode.NOT_CONTROLLER)) is ClientError
    assert str(error_for(3, "topic x is gone")) == "topic x is gone"


def test_a_code_from_the_future() -> None:
    error = error_for(9999)
    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "9999" in str(error)


def test_flags() -> None:
    assert ProducerFenced().fatal
    assert TransactionError().abortable
    assert KafkaTimeout().retriable
    assert not UnknownTopicOrPartition().fatal


def test_time_outs_are_builtin_time_outs() -> None:
    with pytest.raises(TimeoutError, match="full"):
        raise BufferFull("the buffer is full")


@pytest.mark.parametrize(
    "error",
    [KafkaTimeout("late"), OffsetOutOfRange("gone", partitions={"t": 1}), LogTruncated("cut", divergent={"t": 5})],
)
def test_errors_travel(error: ClientError) -> None:
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert twin.code is error.code
        assert twin.__dict__ == error.__dict__


def test_everything_offered_exists_and_is_documented() -> None:
    for name in errors.__all__:
        assert getattr(errors, name) is not None


def test_every_error_tells_what_may_be_done_about_it() -> None:
    for error in (
        penstock.AuthenticationFailed(None, "no"),
        penstock.WrongSecurityProtocol(None, "no"),
        penstock.KafkaError(penstock.ErrorCode.INVALID_CONFIG),
        penstock.SerializationError("no"),
    ):
        assert (error.retriable, error.fatal, error.abortable) == (False, False, False)
    assert penstock.KafkaError(penstock.ErrorCode.NOT_CONTROLLER).retriable
