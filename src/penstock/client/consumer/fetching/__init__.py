"""How records get here: what to ask of which broker, what came back, and how it is opened.

Pure parts: `session` (what a broker remembers of us), `response` (an answer without copies), `aborted` (which batches
read_committed skips), `partition_fetch` (batches to records). On the loop: `fetcher` (who is asked when, what is kept),
`list_offsets` (beginnings, ends, times), `resetting` (positions that are missing or in doubt).
"""
