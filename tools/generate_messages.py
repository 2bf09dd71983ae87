"""Writes `penstock/protocol/messages/*.py` and `penstock/protocol/api_table.py` from the schemas that kio carries.

kio has one class per message and version; here they become one class for all versions, with plain types: durations and
instants are `..._ms` integers, ids are UUIDs (the zero id instead of None), error codes are integers.

Run from the repository root: `python tools/generate_messages.py`, then `ruff format`.
"""

from __future__ import annotations

import dataclasses
import datetime
import types
import typing
from pathlib import Path
from typing import Any

from kio.index import load_entity_schema
from kio.schema.index import LoadableEntityType, api_key_map, schema_name_map
from kio.static.constants import EntityType

ROOT = Path(__file__).resolve().parents[1] / "src" / "penstock" / "protocol"
MESSAGES = ROOT / "messages"

# Left out: delegation tokens, quorum, controller and broker registration of KRaft, telemetry, share and streams groups.
API_KEYS = (*range(4), *range(8, 38), *range(42, 52), 56, 57, 60, 61, 65, 66, 67, 68, 69, 74, 75)
DATA = {"consumer_protocol": ("consumer_protocol_subscription", "consumer_protocol_assignment")}
MILLISECONDS = {"timedelta_i32": "int32", "timedelta_i64": "int64", "datetime_i64": "int64"}
PYTHON_TYPES = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "records": "bytes",
    "uuid": "UUID",
}
IMPLICIT = {"bool": "False", "float64": "0.0", "string": '""', "bytes": 'b""', "uuid": "ZERO_UUID"}
# Arrays that are null by default in Kafka's schemas, which kio does not tell.
NULL_ARRAYS = {("ListPartitionReassignmentsRequest", "topics"), ("ConsumerGroupHeartbeatRequest", "topic_partitions")}


@dataclasses.dataclass
class FieldModel:
    name: str
    type: str
    is_structure: bool
    tag: int | None
    default: Any
    versions: set[int] = dataclasses.field(default_factory=set)
    nullable: set[int] = dataclasses.field(default_factory=set)


@dataclasses.dataclass
class ClassModel:
    name: str
    versions: set[int] = dataclasses.field(default_factory=set)
    fields: list[FieldModel] = dataclasses.field(default_factory=list)


def split_type(annotation: Any) -> tuple[Any, bool, bool]:
    """(element type, is an array, may be null)"""
    nullable = is_array = False
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        nullable = True
        (annotation,) = (one for one in typing.get_args(annotation) if one is not types.NoneType)
    if typing.get_origin(annotation) is tuple:
        is_array = True
        annotation = typing.get_args(annotation)[0]
        if typing.get_origin(annotation) in (types.UnionType, typing.Union):
            annotation = typing.get_args(annotation)[0]
    return annotation, is_array, nullable


def field_model(field: dataclasses.Field[Any]) -> tuple[FieldModel, bool, Any]:
    """The field as one version shows it, whether it may be null there, and its structure class if it has one."""
    element, is_array, nullable = split_type(field.type)
    kind = field.metadata.get("kafka_type")
    name, default = field.name, field.default
    if kind in MILLISECONDS:
        name, default, nullable = f"{name}_ms", milliseconds(kind, default), False
        kind = MILLISECONDS[kind]
    if kind == "error_code":
        kind = "int16"
    if kind == "uuid" and not is_array:
        nullable = False
    structure = element if kind is None else None
    type_name = ("[]" if is_array else "") + (structure.__name__ if structure else str(kind))
    return FieldModel(name, type_name, structure is not None, field.metadata.get("tag"), default), nullable, structure


def milliseconds(kind: str, default: Any) -> Any:
    if isinstance(default, datetime.timedelta):
        return default // datetime.timedelta(milliseconds=1)
    # An instant that may be null is -1 on the wire.
    return -1 if default is None else default


def collect(cls: Any, version: int, classes: dict[str, ClassModel]) -> None:
    """Merge one version of a class (and what it contains) into the models; inner classes come first."""
    seen = []
    for field in dataclasses.fields(cls):
        one, nullable, structure = field_model(field)
        if (cls.__name__, one.name) in NULL_ARRAYS:
            one.default = None
        if structure is not None:
            collect(structure, version, classes)
        seen.append((one, nullable))
    model = classes.setdefault(cls.__name__, ClassModel(cls.__name__))
    model.versions.add(version)
    position = 0
    for one, nullable in seen:
        position = merge_field(model, one, version, nullable, position)


def merge_field(model: ClassModel, one: FieldModel, version: int, nullable: bool, position: int) -> int:
    """Fields keep the order that every single version gives them."""
    index = next((i for i, known in enumerate(model.fields) if known.name == one.name), None)
    if index is None:
        index = position
        model.fields.insert(index, one)
    known = model.fields[index]
    assert index >= position, (model.name, one.name, "fields change their order between versions")
    assert (known.type, known.tag) == (one.type, one.tag), (model.name, one.name)
    known.versions.add(version)
    if nullable:
        known.nullable.add(version)
    return index + 1


def range_text(versions: set[int], lowest: int, highest: int) -> str:
    if not versions:
        return ""
    first, last = min(versions), max(versions)
    assert versions == set(range(first, last + 1)), versions
    low = 0 if first == lowest else first
    if last == highest:
        return f"{low}-"
    return str(low) if low == last else f"{low}-{last}"


def rename_collisions(request: dict[str, ClassModel], response: dict[str, ClassModel]) -> None:
    """A module holds both messages: equal structures are shared, others get the role in front of their name."""
    while True:
        different = [name for name in request if name in response and request[name] != response[name]]
        if not different:
            return
        for prefix, classes in (("Request", request), ("Response", response)):
            for name in different:
                rename(classes, name, prefix + name)


def rename(classes: dict[str, ClassModel], old: str, new: str) -> None:
    items = [(new if name == old else name, model) for name, model in classes.items()]
    classes.clear()
    classes.update(items)
    classes[new].name = new
    for model in classes.values():
        for field in model.fields:
            if field.is_structure and field.type.removeprefix("[]") == old:
                field.type = field.type.replace(old, new)


def python_type(field: FieldModel) -> str:
    kind = field.type.removeprefix("[]")
    text = kind if field.is_structure else PYTHON_TYPES.get(kind, "int")
    if field.type.startswith("[]"):
        text = f"list[{text}]"
    return f"{text} | None" if field.nullable else text


def default_text(field: FieldModel) -> str:
    """The default as an argument of `wire`.

    Without one in the schema a list is empty, and a string or bytes that may be null wherever it exists is null: absent
    texts (error messages above all) are null in what Kafka sends, although its schema would make them empty.
    """
    kind = field.type.removeprefix("[]")
    given = field.default
    if given is None and kind != "uuid":
        return "default=None"
    if field.type.startswith("[]"):
        return "factory=list"
    if field.is_structure:
        return "default=None" if field.nullable == field.versions else f"factory={kind}"
    if given is dataclasses.MISSING or given is None:
        if kind == "records" or (field.nullable and field.nullable == field.versions):
            return "default=None"
        return f"default={IMPLICIT.get(kind, '0')}"
    if isinstance(given, str):
        return f'default="{given}"'
    plain = {"bool": bool, "float64": float}.get(kind, int)(given)
    return f"default={plain!r}"


def class_text(model: ClassModel, lowest: int, highest: int) -> str:
    lines = ["@message", f"class {model.name}(Message):"]
    for field in model.fields:
        arguments = [f'"{field.type}"']
        versions = range_text(field.versions, lowest, highest)
        arguments.append(f'"{versions}"')
        if field.nullable:
            arguments.append(f'nullable="{range_text(field.nullable, lowest, highest)}"')
        if field.tag is not None:
            arguments.append(f"tag={field.tag}")
        arguments.append(default_text(field))
        lines.append(f"    {field.name}: {python_type(field)} = wire({', '.join(arguments)})")
    if not model.fields:
        lines.append("    pass")
    return "\n".join(lines) + "\n"


def module_text(title: str, classes: list[ClassModel], lowest: int, highest: int) -> str:
    body = "\n\n".join(class_text(model, lowest, highest) for model in classes)
    head = [f'"""{title} Generated by `tools/generate_messages.py`."""', ""]
    head += ["from __future__ import annotations", ""]
    if "UUID" in body:
        head += ["from uuid import UUID", ""]
    if "ZERO_UUID" in body:
        head.append("from penstock.base.types import ZERO_UUID")
    head.append("from penstock.protocol.schema import Message, message" + (", wire" if "wire(" in body else ""))
    return "\n".join(head) + "\n\n\n" + body


def collect_versions(name: str, kind: LoadableEntityType, root: str) -> dict[str, ClassModel]:
    classes: dict[str, ClassModel] = {}
    for version in sorted(schema_name_map[name]):
        cls = load_entity_schema(name, version, kind)
        collect(cls, version, classes)
        assert cls.__name__ == root, (cls.__name__, root)
    # The message itself last, what it contains before it.
    classes[root] = classes.pop(root)
    return order_by_use(classes, root)


def order_by_use(classes: dict[str, ClassModel], root: str) -> dict[str, ClassModel]:
    """A structure stands above the class that uses it, whatever version brought it in."""
    ordered: dict[str, ClassModel] = {}

    def visit(name: str) -> None:
        if name in ordered:
            return
        for field in classes[name].fields:
            if field.is_structure:
                visit(field.type.removeprefix("[]"))
        ordered[name] = classes[name]

    visit(root)
    return ordered


def write_api(key: int) -> tuple[int, str, int, int, int | None]:
    name = api_key_map[key]
    camel = load_entity_schema(name, max(schema_name_map[name]), EntityType.request).__name__.removesuffix("Request")
    versions = sorted(schema_name_map[name])
    request = collect_versions(name, EntityType.request, f"{camel}Request")
    response = collect_versions(name, EntityType.response, f"{camel}Response")
    rename_collisions(request, response)
    classes = [*request.values(), *(model for key_, model in response.items() if key_ not in request)]
    title = f"{camel} (key {key}), versions {versions[0]} to {versions[-1]}."
    (MESSAGES / f"{name}.py").write_text(module_text(title, classes, versions[0], versions[-1]))
    flexible = [v for v in versions if load_entity_schema(name, v, EntityType.request).__flexible__]
    return key, camel, versions[0], versions[-1], flexible[0] if flexible else None


def write_data(module: str, names: tuple[str, ...]) -> None:
    classes: dict[str, ClassModel] = {}
    lowest, highest = 0, 0
    for name in names:
        versions = sorted(schema_name_map[name])
        root = load_entity_schema(name, versions[-1], EntityType.data).__name__
        one = collect_versions(name, EntityType.data, root)
        rename_data(one, root)
        classes.update(one)
        lowest, highest = versions[0], versions[-1]
    title = "What consumers put into JoinGroup and SyncGroup, never flexible."
    (MESSAGES / f"{module}.py").write_text(module_text(title, list(classes.values()), lowest, highest))


def rename_data(classes: dict[str, ClassModel], root: str) -> None:
    role = root.removeprefix("ConsumerProtocol")
    for name in [name for name in classes if name != root]:
        rename(classes, name, role + name)


def table_text(rows: list[tuple[int, str, int, int, int | None]]) -> str:
    lines = [
        '"""Keys, version ranges and first flexible versions of the known APIs.',
        "",
        "Generated by `tools/generate_messages.py`; the words on top of it are in `penstock.protocol.apis`.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from enum import IntEnum",
        "from typing import Final",
        "",
        "",
        "class ApiKey(IntEnum):",
        *(f"    {api_key_map[key].upper()} = {key}" for key, *_ in rows),
        "",
        "",
        "# (key, name, lowest version, highest version, first flexible version)",
        "API_TABLE: Final[tuple[tuple[ApiKey, str, int, int, int | None], ...]] = (",
        *(
            f'    (ApiKey.{api_key_map[key].upper()}, "{camel}", {low}, {high}, {flexible}),'
            for key, camel, low, high, flexible in rows
        ),
        ")",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    MESSAGES.mkdir(exist_ok=True)
    rows = [write_api(key) for key in API_KEYS]
    for module, names in DATA.items():
        write_data(module, names)
    (ROOT / "api_table.py").write_text(table_text(rows))


if __name__ == "__main__":
    main()
