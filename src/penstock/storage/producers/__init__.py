"""What a log remembers of its idempotent and transactional producers: `state.ProducerStateManager`, rules, snapshots.

`replay` follows batches that are in the log already.
"""
