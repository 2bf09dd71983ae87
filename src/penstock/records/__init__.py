"""Record batches of format v2: look at them, make them, check them, open them.

Entry points: `batch` (header and in-place changes), `builder` (records to batches and back), `validation` (what a
leader accepts from a producer), `sealing` (a producer's last step), `columns` (records in Arrow's layout),
`compression` (bounded codecs). `kernel` is the inner loop, compiled where possible.

Pure: no clock, no files, no network. Must not know about topics, logs, requests or who is asking.
"""
