"""Coverage-guided fuzzing of the request decoders with atheris. Run by hand; atheris is not among the dependencies.

    pip install atheris
    PYTHONPATH=src python tests/fuzz/fuzz_protocol.py -max_total_time=600 -rss_limit_mb=1024 corpus/

A corpus directory is optional. The input is a frame as it comes from a socket: header, then body. Anything but a
message or DecodeError is a finding; libFuzzer reports crashes, more than `rss_limit_mb` of memory and inputs that take
seconds. Produce and Fetch go through both codecs: what the generated one reads, the hand-written one reads too. (Not
the reverse: it does not look into the tagged fields of a fetched partition.)
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["penstock.protocol"]):
    from penstock.protocol.apis import APIS, ApiKey
    from penstock.protocol.errors import DecodeError
    from penstock.protocol.hot.fetch import decode_fetch
    from penstock.protocol.hot.produce import decode_produce
    from penstock.protocol.requests import decode_request, decode_response, read_request_header

HOT = {ApiKey.PRODUCE: decode_produce, ApiKey.FETCH: decode_fetch}


def is_refused(decode: object, *arguments: object) -> bool:
    assert callable(decode)
    try:
        decode(*arguments)
    except DecodeError:
        return True
    return False


def test_one_input(data: bytes) -> None:
    frame = memoryview(bytearray(data))
    try:
        header = read_request_header(frame)
    except DecodeError:
        return
    known = APIS.get(header.api_key)
    if known is None or not known.has_version(header.api_version):
        return
    refused = is_refused(decode_request, header.api_key, header.api_version, frame, header.body_position)
    hot = HOT.get(known.key)
    if hot is not None:
        hot_refused = is_refused(hot, header.api_version, frame, header.body_position)
        assert refused or not hot_refused
        assert hot_refused or not refused or known.key is ApiKey.FETCH
    is_refused(decode_response, header.api_key, header.api_version, frame[4:])


if __name__ == "__main__":
    atheris.Setup(sys.argv, test_one_input)
    atheris.Fuzz()
