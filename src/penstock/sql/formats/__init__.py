"""Bytes of records to typed columns and back: JSON, KAFKA, DELIMITED and NONE, with ksqlDB's rules.

`decoding.RowDecoder` turns fetched records into the columns of a source, `encoding.RowEncoder` turns columns into
records of a sink. A codec per format does the bytes (`codecs`, found by name); all of them work on whole columns, and
name the rows that they could not read. Knows Arrow, nothing of Spark, and no clients.
"""
