"""kafka-configs: describe and change the configurations of topics, brokers, groups, and the quotas of clients.

Entities are written `--topic t`, `--broker 1`, `--user-defaults`, or in the older way `--entity-type topics
--entity-name t`; a user and a client may be given together. Quotas and SCRAM credentials are in `config_quotas`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from penstock.cli.connection import read_properties
from penstock.cli.kafka.connecting import open_admin
from penstock.cli.kafka.parsing import Option, Parsed, UsageError, flag, split_list
from penstock.cli.kafka.tool import BOOTSTRAP, COMMAND_CONFIG, ZOOKEEPER, Tool, run_tool

if TYPE_CHECKING:
    from penstock.client.admin import Admin, ConfigEntry, ConfigResource, ConfigSource

TYPES = ("topics", "clients", "users", "brokers", "ips", "client-metrics", "groups", "broker-loggers")
QUOTA_TYPES = ("users", "clients", "ips")
_SHORT = {
    "topic": "topics", "broker": "brokers", "broker-logger": "broker-loggers", "client": "clients", "user": "users",
    "ip": "ips", "client-metrics": "client-metrics", "group": "groups",
}  # fmt: skip
_DEFAULTS = {f"{kind[:-1]}-defaults": kind for kind in ("brokers", "clients", "users", "ips")}
_BAD_CONFIG = (
    'Invalid entity config: all configs to be added must be in the format "key=val" or "key=[val1,val2]" to group '
    "values which contain commas."
)


@dataclass(frozen=True, slots=True)
class Entity:
    """A type, and which of it: a name, the default of all (""), or each there is (None)."""

    kind: str
    name: str | None

    @property
    def noun(self) -> str:
        return self.kind.removesuffix("s")


def _run(options: Parsed) -> None:
    action = options.one_of(("describe", "alter"), "Command must include exactly one action: --describe, --alter")
    chosen = entities(options)
    added, deleted = _changes(options)
    if action == "alter":
        if not added and not deleted:
            raise UsageError(
                "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
            )
        if any(each.name is None for each in chosen):
            raise UsageError(
                "An entity name (or the default) must be specified with --alter: --entity-name, --entity-default, or "
                "one of --topic, --broker, --user, --client, --ip, --group"
            )
    from penstock.cli.kafka import config_quotas

    with open_admin(options) as admin:
        if chosen[0].kind in QUOTA_TYPES:
            if action == "describe":
                config_quotas.describe(admin, chosen)
            else:
                config_quotas.alter(admin, chosen, added, deleted)
                _completed(chosen[-1])
        elif action == "describe":
            _describe(admin, chosen[0], show_all=options.has("all"))
        else:
            _alter(admin, chosen[0], added, deleted)


def entities(options: Parsed) -> list[Entity]:
    """The entity, or a user and a client, as they were typed."""
    kinds: list[str] = []
    names: list[str | None] = []
    for option, value in options.order:
        if option == "entity-type":
            kinds.append(value or "")
        elif option in ("entity-name", "entity-default"):
            names.append(value or "")
    found = [Entity(kind, names[number] if number < len(names) else None) for number, kind in enumerate(kinds)]
    if len(names) > len(kinds):
        raise UsageError("--entity-name and --entity-default say which entity of an --entity-type: give that too")
    found += [Entity(_SHORT[option], value) for option, value in options.order if option in _SHORT]
    found += [Entity(_DEFAULTS[option], "") for option, _ in options.order if option in _DEFAULTS]
    if not found:
        raise UsageError("At least one entity type must be specified")
    for each in found:
        if each.kind not in TYPES:
            raise UsageError(f"Invalid entity type {each.kind}, the entity type must be one of {', '.join(TYPES)}")
    kinds = sorted(each.kind for each in found)
    if len(found) > 1 and kinds != ["clients", "users"]:
        raise UsageError("Only 'users' and 'clients' entity types may be specified together")
    return sorted(found, key=lambda each: each.kind != "users")


def _changes(options: Parsed) -> tuple[dict[str, str], list[str]]:
    added: dict[str, str] = {}
    options.exclude("add-config", "add-config-file")
    if options.has("add-config-file"):
        added |= read_properties(options.text("add-config-file"))
    for text in options.values("add-config"):
        for pair in split_list(text):
            key, equals, value = pair.partition("=")
            if not equals or not key.strip():
                raise UsageError(_BAD_CONFIG)
            value = value.strip()
            added[key.strip()] = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    deleted = [key for text in options.values("delete-config") for key in split_list(text)]
    return added, deleted


def _resource(entity: Entity) -> ConfigResource:
    from penstock.client.admin import ConfigResource, ConfigResourceType

    kinds = {
        "topics": ConfigResourceType.TOPIC,
        "brokers": ConfigResourceType.BROKER,
        "broker-loggers": ConfigResourceType.BROKER_LOGGER,
        "client-metrics": ConfigResourceType.CLIENT_METRICS,
        "groups": ConfigResourceType.GROUP,
    }
    return ConfigResource(kinds[entity.kind], entity.name or "")


def _sources(entity: Entity) -> tuple[ConfigSource, ...]:
    """Where values come from that are this entity's own."""
    from penstock.client.admin import ConfigSource

    return {
        "topics": (ConfigSource.DYNAMIC_TOPIC_CONFIG,),
        "brokers": (ConfigSource.DYNAMIC_BROKER_CONFIG,)
        if entity.name
        else (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,),
        "broker-loggers": (ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,),
        "client-metrics": (ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,),
        "groups": (ConfigSource.DYNAMIC_GROUP_CONFIG,),
    }[entity.kind]


def _describe(admin: Admin, entity: Entity, *, show_all: bool) -> None:
    if entity.name and not show_all and entity.name not in _names(admin, entity.kind):
        print(f"The {entity.noun} '{entity.name}' doesn't exist and doesn't have dynamic config.")
        return
    for each in _each(admin, entity):
        found = admin.describe_configs([_resource(each)], include_synonyms=True)[_resource(each)]
        own = _sources(each)
        if each.kind == "brokers" and not each.name:
            print("Default configs for brokers in the cluster are:")
        else:
            print(f"{'All' if show_all else 'Dynamic'} configs for {each.noun} {each.name} are:")
        for name in sorted(found):
            if show_all or found[name].source in own or each.kind == "broker-loggers":
                print(_config_line(found[name]))


def _config_line(entry: ConfigEntry) -> str:
    synonyms = ", ".join(f"{each.source.name}:{each.name}={_value(each.value)}" for each in entry.synonyms)
    sensitive = "true" if entry.is_sensitive else "false"
    return f"  {entry.name}={_value(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _value(value: str | None) -> str:
    return "null" if value is None else value


def _each(admin: Admin, entity: Entity) -> list[Entity]:
    """The entity, or all of its type."""
    if entity.name is not None:
        return [entity]
    names = _names(admin, entity.kind)
    names += [""] if entity.kind == "brokers" else []
    return [Entity(entity.kind, name) for name in names]


def _names(admin: Admin, kind: str) -> list[str]:
    from penstock.client.admin import ConfigResourceType

    if kind == "topics":
        return list(admin.list_topics(include_internal=True))
    if kind in ("brokers", "broker-loggers"):
        return [str(node.id) for node in admin.describe_cluster().nodes]
    wanted = ConfigResourceType.GROUP if kind == "groups" else ConfigResourceType.CLIENT_METRICS
    found = [each.name for each in admin.list_config_resources([wanted])]
    # A group may have settings before it has members, and members without settings of its own.
    return sorted({*found, *(admin.list_groups() if kind == "groups" else ())})


def _alter(admin: Admin, entity: Entity, added: Mapping[str, str], deleted: list[str]) -> None:
    from penstock.client.admin import AlterConfigOp

    steps = [AlterConfigOp(name=key, value=value) for key, value in added.items()]
    steps += [AlterConfigOp.delete(key) for key in deleted]
    admin.incremental_alter_configs({_resource(entity): steps})
    _completed(entity)


def _completed(entity: Entity) -> None:
    if entity.name:
        print(f"Completed updating config for {entity.noun} {entity.name}.")
    else:
        print(f"Completed updating default config for {entity.kind} in the cluster.")


TOOL = Tool(
    name="kafka-configs",
    about=(
        "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, "
        "client-metrics or group"
    ),
    failure_prefix="Error while executing config command: ",
    run=_run,
    options=(
        BOOTSTRAP,
        Option("bootstrap-controller", "", metavar="server", refused="ask a broker, with --bootstrap-server"),
        COMMAND_CONFIG,
        ZOOKEEPER,
        flag("describe", "Show the configuration of the entity, or of all of its type."),
        flag("alter", "Change the configuration of the entity."),
        flag("all", "With --describe: also what is not the entity's own."),
        Option("entity-type", ", ".join(TYPES) + ".", metavar="type", repeatable=True),
        Option("entity-name", "Which entity of the type.", metavar="name", repeatable=True),
        flag("entity-default", "The default of all entities of the type."),
        Option("add-config", "What to set, as k1=v1,k2=[v1,v2],k3=v3.", metavar="configs", repeatable=True),
        Option("add-config-file", "Properties file with what to set.", metavar="file"),
        Option("delete-config", "What to take back, as k1,k2.", metavar="keys", repeatable=True),
        Option("topic", "The topic.", metavar="name"),
        Option("broker", "The id of the broker.", metavar="id"),
        Option("broker-logger", "The id of the broker whose loggers are meant.", metavar="id"),
        flag("broker-defaults", "The default of all brokers."),
        Option("client", "The id of the client.", metavar="id"),
        flag("client-defaults", "The default of all clients."),
        Option("user", "The user.", metavar="name"),
        flag("user-defaults", "The default of all users."),
        Option("ip", "The IP address.", metavar="address"),
        flag("ip-defaults", "The default of all IP addresses."),
        Option("client-metrics", "The name of the client metrics.", metavar="name"),
        Option("group", "The group.", metavar="name"),
        flag("force", "Of older command lines; there is nothing to confirm."),
    ),
)


def main() -> NoReturn:
    run_tool(TOOL)


if __name__ == "__main__":
    main()
