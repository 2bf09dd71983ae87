"""Files of a log: segments with their offset, time and transaction indexes, and the slices of them that are sent.

`segment.Segment` is one segment, `segment_list.SegmentList` the ordered ones of a log with a bound on open files.
Knows batches and files, nothing of producers, epochs or watermarks.
"""
