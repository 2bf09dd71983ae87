"""Which version of each API to speak with one broker: the highest that both sides know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from penstock.network.address import Address
from penstock.network.errors import UnsupportedVersion
from penstock.protocol.apis import APIS
from penstock.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

VERSION_MAX: Final = 0x7FFF


class VersionTable:
    """What one broker said of itself when the connection was made."""

    __slots__ = ("_address", "_served", "best", "features", "features_epoch")

    def __init__(
        self,
        address: Address,
        served: Iterable[ApiVersion],
        features: Mapping[str, int] | None = None,
        features_epoch: int = -1,
    ) -> None:
        self._address = address
        self._served = {each.api_key: (each.min_version, each.max_version) for each in served}
        self.features: Mapping[str, int] = dict(features or {})
        """Finalized feature levels, such as `transaction.version`."""
        self.features_epoch = features_epoch
        self.best: Mapping[int, int] = {
            key: best for key in self._served if (best := self._choose(key, 0, VERSION_MAX)) is not None
        }
        """API key to the version that `pick` gives when nothing narrows the choice."""

    @classmethod
    def of_response(cls, address: Address, response: ApiVersionsResponse) -> VersionTable:
        features = {each.name: each.max_version_level for each in response.finalized_features}
        return cls(address, response.api_keys, features, response.finalized_features_epoch)

    def served(self, api_key: int) -> tuple[int, int] | None:
        """The broker's own lowest and highest version."""
        return self._served.get(api_key)

    def pick(self, api_key: int, *, at_least: int = 0, at_most: int = VERSION_MAX) -> int:
        """The version to speak; `UnsupportedVersion` when there is none in the range."""
        best = self.best.get(api_key)
        if best is not None and at_least <= best <= at_most:
            return best
        chosen = self._choose(api_key, at_least, at_most)
        if chosen is None:
            raise UnsupportedVersion(self._address, self._explain(api_key, at_least, at_most))
        return chosen

    def _choose(self, api_key: int, at_least: int, at_most: int) -> int | None:
        ours, theirs = APIS.get(api_key), self._served.get(api_key)
        if ours is None or theirs is None:
            return None
        highest = min(ours.highest_version, theirs[1], at_most)
        return highest if highest >= max(ours.lowest_version, theirs[0], at_least) else None

    def _explain(self, api_key: int, at_least: int, at_most: int) -> str:
        ours, theirs = APIS.get(api_key), self._served.get(api_key)
        if ours is None:
            return f"API {api_key} is unknown here"
        if theirs is None:
            return f"the broker does not serve {ours.name}: use a newer broker or do without this call"
        wanted = f"{max(ours.lowest_version, at_least)} to {min(ours.highest_version, at_most)}"
        older = "broker" if theirs[1] < max(ours.lowest_version, at_least) else "client"
        return (
            f"the broker serves {ours.name} versions {theirs[0]} to {theirs[1]}, "
            f"but {wanted} are needed here: use a newer {older}"
        )
