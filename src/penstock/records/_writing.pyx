# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=False, binding=False
"""Batches that grow record by record, in C, step for step the same as `pure_writing`, which explains it.

Keys, values and headers become `bytes` before the batch is looked at: what they run in Python, if anything, cannot
come between the reading of the batch's state and its change.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_Resize
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT32_MAX, int64_t
from libc.string cimport memcpy, memset

from penstock.records._arrow cimport (
    Column, hold, is_valid, open_binary, open_lists, open_longs, read_bounds, read_long, read_row,
)
from penstock.records._format cimport (
    as_bytes, body_size_of, bytes_ptr, encode_headers, varint_size, wrapping_difference, write_record, write_varint,
)

from penstock.records.arrow_access import BadColumn
from penstock.records.record import Record

cdef enum:
    HEADER_SIZE = 61
    CAPACITY_FIRST = 2048
    # Below this many bytes of room, giving up the interpreter's lock costs more than it yields.
    RELEASE_BYTES = 262144

cdef enum Outcome:
    ALL_DONE
    BATCH_FULL
    NO_CAPACITY
    ROW_DAMAGED
    HEADER_KEYLESS
    HEADER_NOT_TEXT
    RECORD_TOO_LARGE
    BATCH_TOO_LARGE
    NO_SUCH_ROW

cdef object record_type = Record


cdef class BatchWriter:
    def __cinit__(self, object size_max):
        self.size_max = min(max(size_max, 0), INT32_MAX)
        self.capacity = max(min(self.size_max, CAPACITY_FIRST), HEADER_SIZE)
        self.output = PyByteArray_FromStringAndSize(NULL, self.capacity)
        memset(PyByteArray_AS_STRING(self.output), 0, HEADER_SIZE)
        self.count = 0
        self.size = HEADER_SIZE
        self.base_timestamp = -1
        self.max_timestamp = -1

    cdef int reserve(self, Py_ssize_t needed) except -1:
        cdef Py_ssize_t capacity = max(needed, min(self.capacity * 2, self.size_max))
        PyByteArray_Resize(self.output, capacity)
        self.capacity = capacity
        return 0

    cdef int check_free(self) except -1:
        if self.busy:
            raise RuntimeError("another thread is using this batch")
        return 0

    cdef Py_ssize_t add(
        self, int64_t timestamp, bytes key, bytes value, list headers, Py_ssize_t headers_size
    ) except -2:
        cdef int64_t base_timestamp = self.base_timestamp if self.count else timestamp
        cdef int64_t timestamp_delta = wrapping_difference(timestamp, base_timestamp)
        cdef Py_ssize_t body_size = body_size_of(timestamp_delta, self.count, key, value, headers, headers_size)
        cdef Py_ssize_t size = self.size + varint_size(body_size) + body_size
        if self.busy:
            self.check_free()
        if body_size > INT32_MAX:
            raise OverflowError("a record is larger than 2 GiB")
        if self.output is None or (size > self.size_max and self.count):
            return -1
        if size > self.capacity:
            if size > INT32_MAX:
                raise OverflowError("a batch is larger than 2 GiB")
            self.reserve(size)
        write_record(
            <unsigned char*>PyByteArray_AS_STRING(self.output) + self.size,
            body_size, timestamp_delta, self.count, key, value, headers,
        )
        self.size = size
        self.base_timestamp = base_timestamp
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.count += 1
        return self.count - 1

    def append(self, int64_t timestamp, object key, object value, object headers=()):
        cdef Py_ssize_t headers_size = 0
        cdef list flat = None
        cdef bytes key_bytes = as_bytes(key)
        cdef bytes value_bytes = as_bytes(value)
        if headers:
            flat = encode_headers(headers, &headers_size)
        return self.add(timestamp, key_bytes, value_bytes, flat, headers_size)

    def extend(self, object records, Py_ssize_t start):
        cdef list items = records if type(records) is list else list(records)
        cdef Py_ssize_t stop = len(items)
        cdef Py_ssize_t index, headers_size
        cdef list flat
        cdef tuple record
        check_rows(start, stop, stop)
        for index in range(start, stop):
            if index >= len(items):
                raise RuntimeError("the records changed while they were written")
            item = items[index]
            if (type(item) is record_type or PyTuple_CheckExact(item)) and PyTuple_GET_SIZE(item) == 4:
                record = <tuple>item
                headers_size = 0
                flat = encode_headers(record[3], &headers_size) if record[3] else None
                if self.add(record[0], as_bytes(record[1]), as_bytes(record[2]), flat, headers_size) < 0:
                    return index - start
            elif self.append(*item) < 0:
                return index - start
        return stop - start

    def extend_values(
        self, int64_t timestamp, object keys, object values, Py_ssize_t start, Py_ssize_t stop, object rows=None
    ):
        cdef list value_list = values if type(values) is list else list(values)
        cdef list key_list = keys if keys is None or type(keys) is list else list(keys)
        cdef list held = []
        cdef Py_ssize_t length = len(value_list)
        cdef Py_ssize_t index, at, size = 0
        cdef bytes key
        cdef bytes_ptr numbers = hold(rows, held, &size)
        cdef int64_t number
        if key_list is not None:
            length = min(length, len(key_list))
        check_rows(start, stop, length if rows is None else size >> 3)
        for index in range(start, stop):
            at = index
            if rows is not None:
                memcpy(&number, numbers + 8 * index, 8)
                at = number
            if at < 0 or at >= length:
                raise ValueError(f"no row of {length}: {at}")
            if at >= len(value_list) or (key_list is not None and at >= len(key_list)):
                raise RuntimeError("the records changed while they were written")
            key = None if key_list is None else as_bytes(key_list[at])
            if at >= len(value_list):
                raise RuntimeError("the records changed while they were written")
            if self.add(timestamp, key, as_bytes(value_list[at]), None, 0) < 0:
                return index - start
        return stop - start

    def take(self):
        cdef bytearray output = self.output
        self.check_free()
        if output is None:
            raise ValueError("the batch was taken already")
        self.output = None
        PyByteArray_Resize(output, self.size)
        return output


cdef int check_rows(Py_ssize_t start, Py_ssize_t stop, Py_ssize_t length) except -1:
    if not 0 <= start <= stop <= length:
        raise ValueError(f"no range of {length} rows: {start} to {stop}")
    return 0


cdef struct Sources:
    Column keys
    Column values
    Column timestamps
    Column headers
    Column header_keys
    Column header_values
    int64_t timestamp
    bytes_ptr rows
    Py_ssize_t length

cdef struct Sink:
    unsigned char* start
    Py_ssize_t size
    Py_ssize_t size_max
    Py_ssize_t capacity
    Py_ssize_t count
    int64_t base_timestamp
    int64_t max_timestamp
    # Where it stopped, or the row or size that stopped it.
    Py_ssize_t index
    int64_t culprit


def encode_columns(
    BatchWriter writer not None,
    object keys,
    object values,
    object timestamps,
    object headers,
    Py_ssize_t start,
    Py_ssize_t stop,
    int64_t timestamp=-1,
    object rows=None,
):
    cdef list held = []
    cdef Sources sources
    cdef Sink sink
    cdef Outcome outcome = ALL_DONE
    memset(&sources, 0, sizeof(Sources))
    sources.timestamp = timestamp
    open_sources(&sources, keys, values, timestamps, headers, stop, rows, held)
    check_source_rows(&sources, start, stop, rows, held)
    writer.check_free()
    if writer.output is None:
        return 0
    sink.index = start
    while True:
        begin(writer, &sink)
        # Headers are measured first and written then: no other thread may change them in between.
        if headers is None and sink.size_max - sink.size >= RELEASE_BYTES and stop - sink.index >= 1024:
            writer.busy = True
            with nogil:
                outcome = encode_rows(&sources, &sink, stop)
            writer.busy = False
        else:
            outcome = encode_rows(&sources, &sink, stop)
        finish(writer, &sink)
        if outcome != NO_CAPACITY:
            break
        writer.reserve(sink.culprit)
    if outcome > NO_CAPACITY:
        raise_for(outcome, sink.culprit, sources.length)
    return sink.index - start


cdef int open_sources(
    Sources* sources, object keys, object values, object timestamps, object headers, Py_ssize_t stop, object rows,
    list held,
) except -1:
    cdef Py_ssize_t length = -1
    for column in (keys, values, timestamps, headers):
        if column is not None and (length < 0 or column.length < length):
            length = column.length
    sources.length = stop if length < 0 else length
    if keys is not None:
        open_binary(keys, &sources.keys, held, BadColumn)
    if values is not None:
        open_binary(values, &sources.values, held, BadColumn)
    if timestamps is not None:
        open_longs(timestamps, &sources.timestamps, held, BadColumn)
    if headers is not None:
        open_lists(headers, &sources.headers, held, BadColumn)
        open_binary(headers.keys, &sources.header_keys, held, BadColumn)
        open_binary(headers.values, &sources.header_values, held, BadColumn)
        sources.headers.data_size = min(sources.header_keys.length, sources.header_values.length)
    return 0


cdef int check_source_rows(Sources* sources, Py_ssize_t start, Py_ssize_t stop, object rows, list held) except -1:
    cdef Py_ssize_t size = 0
    sources.rows = hold(rows, held, &size)
    return check_rows(start, stop, sources.length if rows is None else size >> 3)


cdef void begin(BatchWriter writer, Sink* sink) noexcept:
    sink.start = <unsigned char*>PyByteArray_AS_STRING(writer.output)
    sink.size = writer.size
    sink.size_max = writer.size_max
    sink.capacity = writer.capacity
    sink.count = writer.count
    sink.base_timestamp = writer.base_timestamp
    sink.max_timestamp = writer.max_timestamp


cdef void finish(BatchWriter writer, Sink* sink) noexcept:
    writer.size = sink.size
    writer.count = sink.count
    writer.base_timestamp = sink.base_timestamp
    writer.max_timestamp = sink.max_timestamp


cdef int raise_for(Outcome outcome, int64_t culprit, Py_ssize_t length) except -1:
    if outcome == NO_SUCH_ROW:
        raise ValueError(f"no row of {length}: {culprit}")
    if outcome == ROW_DAMAGED:
        raise BadColumn(f"row {culprit} lies outside of the data")
    if outcome == HEADER_KEYLESS:
        raise BadColumn("a header has no key")
    if outcome == HEADER_NOT_TEXT:
        raise BadColumn("the key of a header is not UTF-8")
    what = "record" if outcome == RECORD_TOO_LARGE else "batch"
    raise OverflowError(f"a {what} is larger than 2 GiB")


cdef Outcome encode_rows(Sources* sources, Sink* sink, Py_ssize_t stop) noexcept nogil:
    cdef Outcome outcome
    cdef int64_t row, timestamp, base_timestamp, delta
    cdef int64_t first_header = 0, last_header = 0
    cdef bytes_ptr key = NULL
    cdef bytes_ptr value = NULL
    cdef Py_ssize_t key_size, value_size, body_size, size
    cdef unsigned char* cursor
    while sink.index < stop:
        row = sink.index
        if sources.rows != NULL:
            memcpy(&row, sources.rows + 8 * sink.index, 8)
            sink.culprit = row
            if row < 0 or row >= sources.length:
                return NO_SUCH_ROW
        sink.culprit = row
        timestamp = read_long(&sources.timestamps, row, sources.timestamp)
        if not read_row(&sources.keys, row, &key, &key_size):
            return ROW_DAMAGED
        if not read_row(&sources.values, row, &value, &value_size):
            return ROW_DAMAGED
        base_timestamp = sink.base_timestamp if sink.count else timestamp
        delta = wrapping_difference(timestamp, base_timestamp)
        body_size = 2 + varint_size(delta) + varint_size(sink.count) + part_size(key_size) + part_size(value_size)
        if sources.headers.present:
            outcome = measure_headers(sources, sink, row, &first_header, &last_header, &body_size)
            if outcome:
                return outcome
        if body_size > INT32_MAX:
            return RECORD_TOO_LARGE
        size = sink.size + varint_size(body_size) + body_size
        if size > sink.size_max and sink.count:
            return BATCH_FULL
        if size > sink.capacity:
            sink.culprit = size
            return NO_CAPACITY if size <= INT32_MAX else BATCH_TOO_LARGE
        cursor = write_varint(sink.start + sink.size, body_size)
        cursor[0] = 0
        cursor = write_varint(cursor + 1, delta)
        cursor = write_varint(cursor, sink.count)
        cursor = write_part(cursor, key, key_size)
        cursor = write_part(cursor, value, value_size)
        cursor = write_varint(cursor, last_header - first_header)
        if first_header < last_header:
            write_headers(sources, first_header, last_header, cursor)
        sink.size = size
        sink.base_timestamp = base_timestamp
        if timestamp > sink.max_timestamp:
            sink.max_timestamp = timestamp
        sink.count += 1
        sink.index += 1
    return ALL_DONE


cdef inline Py_ssize_t part_size(Py_ssize_t size) noexcept nogil:
    return 1 if size < 0 else varint_size(size) + size


cdef inline unsigned char* write_part(unsigned char* output, bytes_ptr data, Py_ssize_t size) noexcept nogil:
    output = write_varint(output, size)
    if size > 0:
        memcpy(output, data, size)
        output += size
    return output


cdef Outcome measure_headers(
    Sources* sources, Sink* sink, Py_ssize_t row, int64_t* first, int64_t* last, Py_ssize_t* body_size
) noexcept nogil:
    """Check the headers of a row and add their size, without the byte that a record without headers has."""
    cdef int64_t index
    cdef bytes_ptr start = NULL
    cdef Py_ssize_t size = 0
    first[0] = last[0] = 0
    if not is_valid(&sources.headers, row):
        return ALL_DONE
    if not read_bounds(&sources.headers, row, first, last):
        return ROW_DAMAGED
    body_size[0] += varint_size(last[0] - first[0]) - 1
    for index in range(first[0], last[0]):
        sink.culprit = index
        if not read_row(&sources.header_keys, index, &start, &size):
            return ROW_DAMAGED
        if size < 0:
            return HEADER_KEYLESS
        if not is_text(start, size):
            return HEADER_NOT_TEXT
        body_size[0] += part_size(size)
        if not read_row(&sources.header_values, index, &start, &size):
            return ROW_DAMAGED
        body_size[0] += part_size(size)
    return ALL_DONE


cdef void write_headers(Sources* sources, int64_t first, int64_t last, unsigned char* cursor) noexcept nogil:
    cdef int64_t index
    cdef bytes_ptr start = NULL
    cdef Py_ssize_t size = 0
    for index in range(first, last):
        read_row(&sources.header_keys, index, &start, &size)
        cursor = write_part(cursor, start, size)
        read_row(&sources.header_values, index, &start, &size)
        cursor = write_part(cursor, start, size)


cdef bint is_text(bytes_ptr start, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t index
    for index in range(size):
        if start[index] >= 0x80:
            with gil:
                try:
                    PyUnicode_DecodeUTF8(<const char*>start, size, NULL)
                except UnicodeDecodeError:
                    return False
            return True
    return True
