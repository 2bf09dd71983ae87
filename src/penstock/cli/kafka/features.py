"""kafka-features: the levels of features that a cluster has agreed on, and their change.

Levels of `metadata.version` have the names of Kafka's releases; which levels the other features have by default with a
release of Kafka is a table here, as it is in Kafka's own tool.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NoReturn

from penstock.cli.failures import Failed
from penstock.cli.kafka.commands import Command, chosen, synopsis
from penstock.cli.kafka.connecting import open_admin
from penstock.cli.kafka.parsing import Option, Parsed, UsageError, flag
from penstock.cli.kafka.tool import BOOTSTRAP, COMMAND_CONFIG, Tool, run_tool

METADATA: Final = "metadata.version"
_RELEASES: Final = (
    "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV1",
    "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0",
    "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0", "4.4-IV0",
)  # fmt: skip
LEVELS: Final = {name: level for level, name in enumerate(_RELEASES, start=7)}
"""Levels of metadata.version by their names."""
_STABLE: Final = "4.3-IV0"
_DEFAULTS: Final = {
    "kraft.version": (1, "3.9-IV0"),
    "transaction.version": (2, "4.0-IV2"),
    "group.version": (1, "4.0-IV0"),
    "eligible.leader.replicas.version": (1, "4.1-IV0"),
    "share.version": (1, "4.2-IV0"),
    "streams.version": (1, "4.2-IV1"),
}
"""The highest level of each feature, and the release from which on it is the default. Before it, that is 0."""
_REQUIRES: Final = {("eligible.leader.replicas.version", 1): "4.0-IV1"}


def _run(options: Parsed) -> int:
    return chosen(options, _COMMANDS)(options)


def _describe(options: Parsed) -> int:
    with open_admin(options) as admin:
        found = admin.describe_features(broker=options.number("node-id"))
    for name, each in sorted(found.supported.items()):
        final = found.finalized.get(name)
        level = shown_level(name, 0 if final is None else final.highest)
        epoch = "-" if found.epoch is None else found.epoch
        print(
            f"Feature: {name:<42}SupportedMinVersion: {shown_level(name, each.lowest):<17}SupportedMaxVersion: "
            f"{shown_level(name, each.highest):<17}FinalizedVersionLevel: {level:<17}Epoch: {epoch}"
        )
    return 0


def shown_level(feature: str, level: int) -> str:
    names = {number: name for name, number in LEVELS.items()}
    return names.get(level, str(level)) if feature == METADATA else str(level)


def _upgrade(options: Parsed) -> int:
    return _update(options, "upgrade", _levels(options, "upgrade"))


def _downgrade(options: Parsed) -> int:
    return _update(options, "downgrade", _levels(options, "downgrade"))


def _disable(options: Parsed) -> int:
    if not options.has("feature"):
        raise UsageError("You must specify at least one feature to disable")
    return _update(options, "disable", dict.fromkeys(options.values("feature"), 0))


def _levels(options: Parsed, verb: str) -> dict[str, int]:
    """What is asked for: by a release, or by feature."""
    if options.has("release-version"):
        for other in ("feature", "metadata"):
            if options.has(other):
                raise UsageError(f"Can not specify `release-version` with other feature flags such as --{other}")
        levels = defaults(options.text("release-version"))
        return {name: level for name, level in levels.items() if level or verb == "downgrade"}
    wanted = dict(map(parse_level, options.values("feature")))
    if options.has("metadata"):
        print(" `metadata` flag is deprecated and may be removed in a future release.")
        wanted[METADATA] = metadata_level(options.text("metadata"))
    if not wanted:
        raise UsageError(f"You must specify at least one feature to {verb}")
    return wanted


def parse_level(text: str) -> tuple[str, int]:
    """`feature=level`."""
    name, equals, level = text.partition("=")
    if not equals:
        raise UsageError(f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        return name.strip(), int(level)
    except ValueError:
        raise UsageError(f"Can't parse feature=level string {text}: unable to parse {level} as a short.") from None


def metadata_level(release: str) -> int:
    """The level by its name; a release alone (`4.0`) is its last one."""
    found = [level for name, level in LEVELS.items() if release in (name, name.partition("-")[0])]
    if not found:
        names = ", ".join(LEVELS)
        raise Failed(f"Unknown metadata.version '{release}'. Supported metadata.version are: {names}")
    return found[-1]


def defaults(release: str) -> dict[str, int]:
    """The levels of all features that come with a release."""
    level = metadata_level(release)
    others = {name: highest if level >= LEVELS[since] else 0 for name, (highest, since) in _DEFAULTS.items()}
    return {METADATA: level, **others}


def _update(options: Parsed, verb: str, levels: Mapping[str, int]) -> int:
    from penstock.base.errors import KafkaError
    from penstock.client.admin import FeatureUpdate, FeatureUpgrade

    kind = FeatureUpgrade.UPGRADE
    if verb != "upgrade":
        kind = FeatureUpgrade.UNSAFE_DOWNGRADE if options.has("unsafe") else FeatureUpgrade.SAFE_DOWNGRADE
    dry = options.has("dry-run")
    updates = {name: FeatureUpdate(level=level, upgrade=kind) for name, level in sorted(levels.items())}
    with open_admin(options) as admin:
        try:
            admin.update_features(updates, validate_only=dry)
        except KafkaError as error:
            return _failed(verb, levels, error, dry=dry)
    for name, level in sorted(levels.items()):
        print(f"{name} {'can be' if dry else 'was'} {_DONE[verb]}{'' if verb == 'disable' else f' to {level}'}.")
    return 0


_DONE: Final = {"upgrade": "upgraded", "downgrade": "downgraded", "disable": "disabled"}


def _failed(verb: str, levels: Mapping[str, int], error: Exception, *, dry: bool) -> int:
    """All of them are done, or none."""
    failures: Mapping[str, Exception] = getattr(error, "failures", {})
    for name, level in sorted(levels.items()):
        where = "" if verb == "disable" else f" to {level}"
        print(f"{'Can' if dry else 'Could'} not {verb} {name}{where}. {_reason(name, failures.get(name, error))}")
    print(f"{len(levels)} out of {len(levels)} operation(s) failed.", file=sys.stderr)
    return 1


def _reason(name: str, error: Exception) -> str:
    """What the controller says, without what our client puts before it."""
    text = str(getattr(error, "message", error))
    return text.removeprefix("updating features: ").removeprefix(f"feature {name}: ")


def _version_mapping(options: Parsed) -> int:
    release = options.get("release-version") or _STABLE
    for name, level in defaults(release).items():
        print(f"{name}={level} ({release})" if name == METADATA else f"{name}={level}")
    return 0


def _dependencies(options: Parsed) -> int:
    if not options.has("feature"):
        raise UsageError("Which feature? Give --feature feature=level")
    for line in dependencies(map(parse_level, options.values("feature"))):
        print(line)
    return 0


def dependencies(features: Iterable[tuple[str, int]]) -> Iterable[str]:
    for name, level in features:
        if name not in (METADATA, *_DEFAULTS):
            raise Failed(f"Unknown feature: {name}")
        known = LEVELS.values() if name == METADATA else range(_DEFAULTS[name][0] + 1)
        if level not in known:
            raise Failed(f"No feature:{name} with feature level {level}")
        shown = f"{name}={level}" + (f" ({shown_level(name, level)})" if name == METADATA else "")
        needed = _REQUIRES.get((name, level))
        yield f"{shown} requires:" if needed else f"{shown} has no dependencies."
        if needed:
            yield f"    {METADATA}={LEVELS[needed]} ({needed})"


_COMMANDS: Final[Mapping[str, Command[Callable[[Parsed], int]]]] = {
    "describe": Command(_describe, ("node-id",)),
    "upgrade": Command(_upgrade, ("feature", "metadata", "release-version", "dry-run")),
    "downgrade": Command(_downgrade, ("feature", "metadata", "release-version", "unsafe", "dry-run")),
    "disable": Command(_disable, ("feature", "unsafe", "dry-run")),
    "version-mapping": Command(_version_mapping, ("release-version",)),
    "feature-dependencies": Command(_dependencies, ("feature",)),
}

TOOL = Tool(
    name="kafka-features",
    about="This tool manages feature flags in Kafka.",
    words=synopsis(_COMMANDS),
    run=_run,
    options=(
        BOOTSTRAP,
        Option("bootstrap-controller", "", metavar="server", refused="ask a broker, with --bootstrap-server"),
        COMMAND_CONFIG,
        Option("node-id", "describe: the broker to ask.", metavar="id"),
        Option("feature", "The feature, as feature=level; with disable its name alone; repeatable.",
               metavar="feature=level", repeatable=True),
        Option("metadata", "upgrade, downgrade: the level of metadata.version by its name.", metavar="version"),
        Option("release-version", "upgrade, downgrade, version-mapping: the levels that come with a release of Kafka.",
               metavar="version"),
        flag("unsafe", "downgrade, disable: even if metadata are lost by it."),
        flag("dry-run", "upgrade, downgrade, disable: check it and do nothing."),
    ),
)  # fmt: skip


def main() -> NoReturn:
    run_tool(TOOL)


if __name__ == "__main__":
    main()
