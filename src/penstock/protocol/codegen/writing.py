"""The source text of a writer: `write(out, message)`, which appends to a bytearray.

Tagged fields are written only when they differ from their default, in the order of their tags, as Kafka does.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import Any

from penstock.protocol.codegen.source import FIXED_FORMATS, SHORT_ARRAY, Source, default_of, short_array_packers
from penstock.protocol.errors import EncodeError
from penstock.protocol.primitives import string_length, varint
from penstock.protocol.schema import Wire, element_class, wire_fields


def writer_source(message_class: type, version: int, flexible: bool) -> tuple[str, dict[str, Any]]:
    """The text of the writer and the names its code needs."""
    names: dict[str, Any] = {
        "EncodeError": EncodeError,
        "pack": struct.pack,
        "string_length": string_length,
        "struct_error": struct.error,
        "varint": varint,
    }
    emitter = _WriterEmitter(Source(names), version, flexible)
    return emitter.function(message_class), names


class _WriterEmitter:
    def __init__(self, source: Source, version: int, flexible: bool) -> None:
        self.source = source
        self.version = version
        self.flexible = flexible
        self.out = "out"
        # Fixed-size values wait here until something of variable size follows, then one struct writes them all.
        self.pending: list[tuple[str, str]] = []

    def function(self, message_class: type) -> str:
        source = self.source
        with source.block("def write(out, m):"):
            with source.block("try:"):
                self.structure(message_class, "m")
                self.flush()
                # Some messages have no field in some versions.
                source.line("pass")
            with source.block("except (AttributeError, TypeError, UnicodeEncodeError, struct_error) as error:"):
                text = f"{message_class.__name__} v{self.version} cannot be written: "
                source.line(f"raise EncodeError({text!r} + str(error)) from error")
        return source.text()

    def structure(self, message_class: type, message: str) -> None:
        tagged = []
        for field, wire in wire_fields(message_class):
            if not wire.exists_in(self.version):
                continue
            if wire.tag is None:
                self.value(message_class, wire, f"{message}.{field.name}")
            else:
                tagged.append((field, wire))
        if self.flexible:
            self.tags(message_class, message, sorted(tagged, key=lambda pair: pair[1].tag or 0))

    def value(self, owner: type, wire: Wire, expression: str) -> None:
        nullable = wire.nullable_in(self.version)
        if wire.is_array:
            self.array(owner, wire, expression, nullable)
        else:
            self.element(owner, wire, expression, nullable)

    def element(self, owner: type, wire: Wire, expression: str, nullable: bool) -> None:
        kind = wire.element_type
        nested = element_class(owner, wire)
        if nested is not None:
            self.nested(nested, expression, nullable, tagged=wire.tag is not None)
        elif kind == "uuid":
            self.pending.append(("16s", f"{expression}.bytes"))
        elif kind in FIXED_FORMATS:
            self.pending.append((FIXED_FORMATS[kind], expression))
        elif kind == "string":
            self.sized("h", expression, ".encode()", "string_length", nullable)
        else:
            self.sized("i", expression, "", "varint", nullable)

    def nested(self, nested: type, expression: str, nullable: bool, tagged: bool) -> None:
        source = self.source
        message = source.variable("m")
        source.line(f"{message} = {expression}")
        if not nullable:
            self.structure(nested, message)
            return
        self.flush()
        with source.block(f"if {message} is None:"):
            # An unsigned varint in a tagged field, a signed byte elsewhere.
            source.line(f"{self.out}.append({0 if tagged else 255})")
        with source.block("else:"):
            source.line(f"{self.out}.append(1)")
            self.structure(nested, message)
            self.flush()

    def sized(self, length_format: str, expression: str, convert: str, helper: str, nullable: bool) -> None:
        """A string or bytes: a length, then that many bytes."""
        source = self.source
        data = source.variable("s")
        if not self.flexible:
            self.legacy_sized(length_format, data, expression, convert, nullable)
            return
        self.flush()
        source.line(f"{data} = {expression}")
        if nullable:
            with source.block(f"if {data} is None:"):
                source.line(f"{self.out}.append(0)")
            with source.block("else:"):
                self.compact_sized(data, convert, helper)
        else:
            self.compact_sized(data, convert, helper)

    def compact_sized(self, data: str, convert: str, helper: str) -> None:
        source = self.source
        length = source.variable("n")
        if convert:
            source.line(f"{data} = {data}{convert}")
        source.line(f"{length} = len({data}) + 1")
        with source.block(f"if {length} < 128:"):
            source.line(f"{self.out}.append({length})")
        with source.block("else:"):
            source.line(f"{self.out} += {helper}({length})")
        source.line(f"{self.out} += {data}")

    def legacy_sized(self, length_format: str, data: str, expression: str, convert: str, nullable: bool) -> None:
        source = self.source
        length = source.variable("n")
        source.line(f"{data} = {expression}")
        if nullable:
            with source.block(f"if {data} is None:"):
                source.line(f'{data} = b""')
                source.line(f"{length} = -1")
            with source.block("else:"):
                source.line(f"{data} = {data}{convert}")
                source.line(f"{length} = len({data})")
        else:
            source.line(f"{data} = {data}{convert}")
            source.line(f"{length} = len({data})")
        self.pending.append((length_format, length))
        self.flush()
        source.line(f"{self.out} += {data}")

    def array(self, owner: type, wire: Wire, expression: str, nullable: bool) -> None:
        source = self.source
        items = source.variable("a")
        source.line(f"{items} = {expression}")
        self.flush()
        if nullable:
            with source.block(f"if {items} is None:"):
                source.line(f"{self.out}.append(0)" if self.flexible else f'{self.out} += b"\\xff\\xff\\xff\\xff"')
            with source.block("else:"):
                self.elements(owner, wire, items)
        else:
            self.elements(owner, wire, items)

    def elements(self, owner: type, wire: Wire, items: str) -> None:
        source = self.source
        if wire.element_type in FIXED_FORMATS and wire.element_type != "uuid":
            self.numbers(FIXED_FORMATS[wire.element_type], items)
            return
        self.count(f"len({items})")
        item = source.variable("x")
        with source.block(f"for {item} in {items}:"):
            self.element(owner, wire, item, nullable=False)
            self.flush()

    def numbers(self, element: str, items: str) -> None:
        """An array of fixed-size numbers, with its count in the same struct while it is short."""
        source = self.source
        count = source.variable("n")
        prefix, announced = ("B", f"{count} + 1") if self.flexible else ("i", count)
        packers = source.constant(short_array_packers(prefix, element), "packers")
        source.line(f"{count} = len({items})")
        with source.block(f"if {count} < {SHORT_ARRAY}:"):
            source.line(f"{self.out} += {packers}[{count}]({announced}, *{items})")
        with source.block("else:"):
            self.count(count)
            source.line(f'{self.out} += pack(f">{{{count}}}{element}", *{items})')

    def count(self, expression: str) -> None:
        source = self.source
        if not self.flexible:
            self.pending.append(("i", expression))
            self.flush()
            return
        count = source.variable("n")
        source.line(f"{count} = {expression} + 1")
        with source.block(f"if {count} < 128:"):
            source.line(f"{self.out}.append({count})")
        with source.block("else:"):
            source.line(f"{self.out} += varint({count})")

    def tags(self, owner: type, message: str, tagged: list[tuple[dataclasses.Field[Any], Wire]]) -> None:
        if not tagged:
            self.pending.append(("x", ""))
            return
        source = self.source
        self.flush()
        count, section, outer = source.variable("n"), source.variable("t"), self.out
        source.line(f"{count} = 0")
        source.line(f'{section} = b""')
        for field, wire in tagged:
            default = default_of(field)
            expression = f"{message}.{field.name}"
            test = f"is not {default!r}" if default is None else f"!= {source.constant(default)}"
            with source.block(f"if {expression} {test}:"):
                self.out = source.variable("v")
                source.line(f"{self.out} = bytearray()")
                self.value(owner, wire, expression)
                self.flush()
                source.line(f"{count} += 1")
                source.line(f"{section} += varint({wire.tag}) + varint(len({self.out})) + {self.out}")
        self.out = outer
        source.line(f"{self.out}.append({count})")
        source.line(f"{self.out} += {section}")

    def flush(self) -> None:
        if not self.pending:
            return
        fixed = struct.Struct(">" + "".join(format_ for format_, _ in self.pending))
        values = ", ".join(expression for _, expression in self.pending if expression)
        self.source.line(f"{self.out} += {self.source.constant(fixed.pack, 'pack')}({values})")
        self.pending.clear()
