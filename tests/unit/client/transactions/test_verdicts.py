"""What error codes mean, and how a coordinator is asked again."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode
from penstock.client.errors import ProducerFenced
from penstock.client.producer.transactions.verdicts import Verdict, error_of, verdict_on, verdict_on_batch
from penstock.protocol.apis import ApiKey

E, V = ErrorCode, Verdict
TRANSACTIONAL = (
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
)


@pytest.mark.parametrize("api_key", TRANSACTIONAL)
def test_fencing_is_fatal_everywhere_and_loading_never(api_key: ApiKey) -> None:
    for code in (E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH):
        assert verdict_on(api_key, code) is V.FATAL
        assert isinstance(error_of(api_key, code, "id", "x"), ProducerFenced)
    for code in (E.COORDINATOR_LOAD_IN_PROGRESS, E.CONCURRENT_TRANSACTIONS, E.NETWORK_EXCEPTION):
        assert verdict_on(api_key, code) is V.RETRY
    assert verdict_on(api_key, E.NOT_COORDINATOR) is V.REFIND
    assert verdict_on(api_key, E.NONE) is V.DONE


@pytest.mark.parametrize(
    ("api_key", "code", "verdict"),
    [
        (ApiKey.ADD_PARTITIONS_TO_TXN, E.TOPIC_AUTHORIZATION_FAILED, V.ABORTABLE),
        (ApiKey.ADD_PARTITIONS_TO_TXN, E.UNKNOWN_SERVER_ERROR, V.ABORTABLE),
        (ApiKey.ADD_OFFSETS_TO_TXN, E.GROUP_AUTHORIZATION_FAILED, V.ABORTABLE),
        (ApiKey.TXN_OFFSET_COMMIT, E.ILLEGAL_GENERATION, V.ABORTABLE),
        (ApiKey.TXN_OFFSET_COMMIT, E.UNKNOWN_SERVER_ERROR, V.FATAL),
        (ApiKey.END_TXN, E.INVALID_PRODUCER_ID_MAPPING, V.NEW_EPOCH),
        (ApiKey.END_TXN, E.INVALID_TXN_STATE, V.FATAL),
        (ApiKey.INIT_PRODUCER_ID, E.INVALID_TRANSACTION_TIMEOUT, V.FATAL),
    ],
)
def test_special_codes(api_key: ApiKey, code: ErrorCode, verdict: Verdict) -> None:
    assert verdict_on(api_key, code) is verdict
    error = error_of(api_key, code, "orders", "about")
    assert error.fatal is (verdict is V.FATAL)
    assert error.abortable is not error.fatal
    assert "orders" in error.message
    assert code.name in error.message


def test_batch_refused_for_its_epoch_is_left_to_the_coordinator() -> None:
    assert verdict_on_batch(E.INVALID_PRODUCER_EPOCH) is V.NEW_EPOCH
    assert verdict_on_batch(E.PRODUCER_FENCED) is V.FATAL
    assert verdict_on_batch(E.MESSAGE_TOO_LARGE) is V.NEW_EPOCH
