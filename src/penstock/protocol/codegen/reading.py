"""The source text of a reader: `read(b, p, end) -> (message, p)`.

In the generated code `b` is the buffer, `p` the position and `end` where the message must end at the latest. Indexing
and unpacking beyond the buffer raise by themselves and become `DecodeError` in one place; slices do not, so every slice
and every count is checked first. A count above the number of bytes left is refused before the list grows, as in Kafka.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import Any

from penstock.protocol.codegen.source import FIXED_FORMATS, SHORT_ARRAY, Source, short_array_unpackers
from penstock.protocol.errors import DecodeError
from penstock.protocol.primitives import id_of, read_string_length, read_varint
from penstock.protocol.schema import Wire, element_class, wire_fields


def reader_source(message_class: type, version: int, flexible: bool) -> tuple[str, dict[str, Any]]:
    """The text of the reader and the names its code needs."""
    names: dict[str, Any] = {
        "DecodeError": DecodeError,
        "id_of": id_of,
        "new": object.__new__,
        "read_string_length": read_string_length,
        "read_varint": read_varint,
        "struct_error": struct.error,
        "unpack_from": struct.unpack_from,
    }
    emitter = _ReaderEmitter(Source(names), version, flexible)
    return emitter.function(message_class), names


class _ReaderEmitter:
    def __init__(self, source: Source, version: int, flexible: bool) -> None:
        self.source = source
        self.version = version
        self.flexible = flexible
        # Fixed-size fields wait here until something of variable size follows, then one struct reads them all.
        self.pending: list[tuple[str, str]] = []
        self.after_pending: list[str] = []

    def function(self, message_class: type) -> str:
        source = self.source
        with source.block("def read(b, p, end):"):
            with source.block("try:"):
                message = self.structure(message_class)
                self.flush()
                # A fixed field may lie behind `end` when the message is only a part of the buffer.
                with source.block("if p > end:"):
                    source.line(f"raise DecodeError({f'{message_class.__name__} is cut short'!r})")
                source.line(f"return {message}, p")
            with source.block("except (IndexError, UnicodeDecodeError, struct_error) as error:"):
                text = f"{message_class.__name__} v{self.version} cannot be read: "
                source.line(f"raise DecodeError({text!r} + str(error)) from error")
        return source.text()

    def structure(self, message_class: type) -> str:
        """Read a structure into a new variable and give its name."""
        source = self.source
        message = source.variable("m")
        source.line(f"{message} = new({source.constant(message_class, 'Class')})")
        tagged = []
        for field, wire in wire_fields(message_class):
            target = f"{message}.{field.name}"
            if not wire.exists_in(self.version):
                self.default(field, target)
            elif wire.tag is not None:
                self.default(field, target)
                tagged.append((wire, target))
            else:
                self.value(message_class, wire, target)
        if self.flexible:
            self.tags(message_class, tagged)
        return message

    def default(self, field: dataclasses.Field[Any], target: str) -> None:
        if field.default_factory is list:
            self.source.line(f"{target} = []")
        elif field.default_factory is not dataclasses.MISSING:
            self.source.line(f"{target} = {self.source.constant(field.default_factory, 'Default')}()")
        else:
            self.source.line(f"{target} = {self.source.constant(field.default)}")

    def value(self, owner: type, wire: Wire, target: str) -> None:
        nullable = wire.nullable_in(self.version)
        what = f"{owner.__name__}.{target.partition('.')[2]}"
        if wire.is_array:
            self.array(owner, wire, target, what, nullable)
        else:
            self.element(owner, wire, target, what, nullable)

    def element(self, owner: type, wire: Wire, target: str, what: str, nullable: bool) -> None:
        kind = wire.element_type
        nested = element_class(owner, wire)
        if nested is not None:
            self.nested(nested, target, nullable, tagged=wire.tag is not None)
        elif kind == "uuid":
            raw = self.source.variable("u")
            self.pending.append(("16s", raw))
            self.after_pending.append(f"{target} = id_of({raw})")
        elif kind in FIXED_FORMATS:
            self.pending.append((FIXED_FORMATS[kind], target))
        elif kind == "string":
            self.sized("h", target, 'str(b[p:{end}], "utf-8")', what, nullable)
        else:
            self.sized("i", target, "bytes(b[p:{end}])", what, nullable)

    def nested(self, nested: type, target: str, nullable: bool, tagged: bool) -> None:
        if not nullable:
            self.source.line(f"{target} = {self.structure(nested)}")
            return
        marker = self.source.variable("n")
        with self.source.block(f"if {self.null_marker(marker, tagged)}:"):
            self.source.line(f"{target} = None")
        with self.source.block("else:"):
            message = self.structure(nested)
            self.flush()
            self.source.line(f"{target} = {message}")

    def null_marker(self, marker: str, tagged: bool) -> str:
        """Read what stands before a structure that may be null; give the condition that it is.

        In a tagged field that is an unsigned varint, 0 for null, elsewhere a byte, negative for null.
        """
        if not tagged:
            self.pending.append(("b", marker))
            self.flush()
            return f"{marker} < 0"
        self.flush()
        self.varint(marker)
        return f"not {marker}"

    def sized(self, length_format: str, target: str, expression: str, what: str, nullable: bool) -> None:
        """A string or bytes: a length, then that many bytes."""
        source = self.source
        helper = "read_string_length" if length_format == "h" else "read_varint"
        length, null = self.length(length_format, helper)
        end = source.variable("e")
        with source.block(f"if {null}:"):
            source.line(f"{target} = None" if nullable else f"raise DecodeError({f'{what} is null'!r})")
        with source.block("else:"):
            source.line(f"{end} = p + {length} - 1" if self.flexible else f"{end} = p + {length}")
            with source.block(f"if {end} > end:"):
                source.line(f"raise DecodeError({f'{what} ends beyond the message'!r})")
            source.line(f"{target} = {expression.format(end=end)}")
            source.line(f"p = {end}")

    def length(self, legacy_format: str, helper: str) -> tuple[str, str]:
        """Read a length into a variable; give it and the condition that it stands for null."""
        source = self.source
        length = source.variable("n")
        if not self.flexible:
            self.pending.append((legacy_format, length))
            self.flush()
            return length, f"{length} < 0"
        self.flush()
        source.line(f"{length} = b[p]")
        source.line("p += 1")
        with source.block(f"if {length} > 127:"):
            source.line(f"{length}, p = {helper}(b, p, {length})")
        return length, f"not {length}"

    def array(self, owner: type, wire: Wire, target: str, what: str, nullable: bool) -> None:
        source = self.source
        count, null = self.length("i", "read_varint")
        with source.block(f"if {null}:"):
            source.line(f"{target} = None" if nullable else f"raise DecodeError({f'{what} is null'!r})")
        with source.block("else:"):
            if self.flexible:
                source.line(f"{count} -= 1")
            with source.block(f"if {count} > end - p:"):
                source.line(f"raise DecodeError({f'{what} has more elements than bytes are left'!r})")
            self.elements(owner, wire, target, what, count)

    def elements(self, owner: type, wire: Wire, target: str, what: str, count: str) -> None:
        source = self.source
        kind = wire.element_type
        if kind in FIXED_FORMATS and kind != "uuid":
            fixed = FIXED_FORMATS[kind]
            size = struct.calcsize(">" + fixed)
            with source.block(f"if {count} * {size} > end - p:"):
                source.line(f"raise DecodeError({f'{what} is cut short'!r})")
            unpackers = source.constant(short_array_unpackers(fixed), "unpackers")
            with source.block(f"if {count} < {SHORT_ARRAY}:"):
                source.line(f"{target} = list({unpackers}[{count}](b, p))")
            with source.block("else:"):
                source.line(f'{target} = list(unpack_from(f">{{{count}}}{fixed}", b, p))')
            source.line(f"p += {count} * {size}")
            return
        items, item = source.variable("a"), source.variable("x")
        source.line(f"{items} = []")
        with source.block(f"for _ in range({count}):"):
            self.element(owner, wire, item, what, nullable=False)
            self.flush()
            source.line(f"{items}.append({item})")
        source.line(f"{target} = {items}")

    def tags(self, owner: type, tagged: list[tuple[Wire, str]]) -> None:
        source = self.source
        self.flush()
        count = source.variable("n")
        source.line(f"{count} = b[p]")
        source.line("p += 1")
        with source.block(f"if {count}:"):
            self.long_varint(count)
            with source.block(f"for _ in range({count}):"):
                tag, size, end = source.variable("t"), source.variable("n"), source.variable("e")
                self.varint(tag)
                self.varint(size)
                source.line(f"{end} = p + {size}")
                with source.block(f"if {end} > end:"):
                    source.line(f"raise DecodeError({f'a tagged field of {owner.__name__} is cut short'!r})")
                for wire, target in tagged:
                    with source.block(f"if {tag} == {wire.tag}:"):
                        self.tagged_value(owner, wire, target, end)
                source.line(f"p = {end}")

    def tagged_value(self, owner: type, wire: Wire, target: str, end: str) -> None:
        self.value(owner, wire, target)
        self.flush()
        with self.source.block(f"if p != {end}:"):
            text = f"tagged field {wire.tag} of {owner.__name__} has another size than it says"
            self.source.line(f"raise DecodeError({text!r})")

    def varint(self, name: str) -> None:
        self.source.line(f"{name} = b[p]")
        self.source.line("p += 1")
        self.long_varint(name)

    def long_varint(self, name: str) -> None:
        with self.source.block(f"if {name} > 127:"):
            self.source.line(f"{name}, p = read_varint(b, p, {name})")

    def flush(self) -> None:
        if not self.pending:
            return
        fixed = struct.Struct(">" + "".join(format_ for format_, _ in self.pending))
        targets = ", ".join(target for _, target in self.pending)
        self.source.line(f"{targets}, = {self.source.constant(fixed.unpack_from, 'unpack')}(b, p)")
        self.source.line(f"p += {fixed.size}")
        for line in self.after_pending:
            self.source.line(line)
        self.pending.clear()
        self.after_pending.clear()
