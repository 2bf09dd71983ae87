"""What a test may write for an API, an error code, a count or a duration; all else is refused in one sentence."""

from __future__ import annotations

import math

from penstock.base.errors import ErrorCode
from penstock.protocol.apis import APIS, ApiKey
from penstock.server.registry import ALL_APIS

_SERVED = {int(api.key) for api in ALL_APIS}
_BY_WORD = {known.name.lower(): known.key for known in APIS.values()}


def api_of(api: str | int) -> ApiKey:
    """`"Produce"`, `"PRODUCE"`, `"init_producer_id"`, `0` or `ApiKey.PRODUCE`."""
    if isinstance(api, bool) or not isinstance(api, str | int):
        raise ValueError(f"{api!r} is no API; give its name, such as 'Produce', or its key, such as 0")
    if isinstance(api, int):
        if api not in _SERVED:
            raise ValueError(f"API key {api} is not served by this broker; the keys are {sorted(_SERVED)}")
        return ApiKey(api)
    key = _BY_WORD.get(api.lower().replace("_", "").removesuffix("request"))
    if key is None or key not in _SERVED:
        names = sorted(APIS[number].name for number in _SERVED)
        raise ValueError(f"there is no API {api!r} in this broker; {_nearest(api, names)}")
    return key


def code_of(code: str | int) -> ErrorCode:
    """`"NOT_LEADER_OR_FOLLOWER"`, `6` or `ErrorCode.NOT_LEADER_OR_FOLLOWER`."""
    if isinstance(code, bool) or not isinstance(code, str | int):
        raise ValueError(f"{code!r} is no error code; give its name, such as 'NOT_LEADER_OR_FOLLOWER', or its number")
    try:
        found = ErrorCode[code.upper()] if isinstance(code, str) else ErrorCode(code)
    except (KeyError, ValueError):
        hint = (
            _nearest(code.upper(), list(ErrorCode.__members__)) if isinstance(code, str) else "they go from -1 to 133"
        )
        raise ValueError(f"there is no error code {code!r} in Kafka; {hint}") from None
    if found is ErrorCode.NONE:
        raise ValueError("NONE is no error; leave the fault away to let requests succeed")
    return found


def check_times(times: int | None) -> int | None:
    if times is not None and (isinstance(times, bool) or not isinstance(times, int) or times < 1):
        raise ValueError(f"times={times!r} is not possible; give 1 or more, or None for all until the fault is undone")
    return times


def check_count(name: str, count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise ValueError(f"{name}={count!r} is not possible; give 0 or more")
    return count


def check_seconds(seconds: float) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise ValueError(f"seconds={seconds!r} is not possible; give 0 or more, or use drop() for never")
    return seconds


def _nearest(word: str, known: list[str]) -> str:
    import difflib

    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.5)
    return f"did you mean {by_lower[near[0]]!r}?" if near else f"they are {', '.join(known)}"
