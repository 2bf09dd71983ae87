"""Transactions of a producer: atomic writes to several partitions, together with consumed offsets.

Entry point: `manager.TransactionManager`, which the producer makes when `transactional.id` is set. `states` is the
table of states, `machine` the bookkeeping of one transaction after another (plain, thread safe, no I/O), `verdicts`
says what each error of each API means, `dialogue` has the steps of the protocol, `requests` builds their messages, and
`calls` asks the coordinators until they answer.

Two protocols are spoken. V1: every partition is announced to the transaction coordinator (AddPartitionsToTxn) before
the first batch for it leaves; the epoch stays the same until something goes wrong. V2 (KIP-890, the cluster's feature
`transaction.version` 2): the partition's leader announces it, and every end of a transaction hands out a new epoch, so
that no late batch can slip into the next one.

Nothing here knows batches or sockets: the producer gives its identity (producer id, epoch, sequences) and three hooks.
"""

from __future__ import annotations

from penstock.client.producer.transactions.dialogue import ProducerIdentity
from penstock.client.producer.transactions.machine import TransactionMachine
from penstock.client.producer.transactions.manager import ProducerHooks, TransactionManager
from penstock.client.producer.transactions.states import TransactionState

__all__ = ["ProducerHooks", "ProducerIdentity", "TransactionMachine", "TransactionManager", "TransactionState"]
