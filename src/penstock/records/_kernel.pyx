# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=False, binding=False
"""The record kernel in C, step for step the same as `pure_kernel`, which explains it and is its reference.

Buffers are taken through the plain buffer protocol, for a typed memoryview costs more than walking a small batch. All
pointer arithmetic is guarded here: every read is held against the end of its record, every record against the end of
the range, and the range against the buffer.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT32_MAX, INT64_MAX, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from penstock.records.errors import InvalidRecords
from penstock.records.record import DecodedRecord

COMPILED = True
NO_MIN_TIMESTAMP = INT64_MAX

# The numbers of penstock.records.errors.Defect.
cdef enum:
    DEFECT_RECORD_SIZE = 1
    DEFECT_VARINT = 2
    DEFECT_FIELD_SIZE = 3
    DEFECT_HEADER_COUNT = 4
    DEFECT_HEADER_KEY_SIZE = 5
    DEFECT_OFFSET_DELTA = 6
    DEFECT_BODY_NOT_CONSUMED = 7
    DEFECT_TRAILING_BYTES = 8

ctypedef const unsigned char* bytes_ptr

cdef struct Fields:
    int64_t timestamp_delta
    int32_t offset_delta
    bytes_ptr key
    int32_t key_size
    bytes_ptr value
    int32_t value_size
    bytes_ptr headers
    int32_t header_count

cdef extern from *:
    """
    /* A named tuple is a tuple without further fields, so it can be allocated empty and filled. */
    static PyObject *penstock_new_tuple(PyTypeObject *type, Py_ssize_t size) { return type->tp_alloc(type, size); }
    """
    object penstock_new_tuple(PyTypeObject* type, Py_ssize_t size)
    void PyObject_GC_UnTrack(void* op)


cdef inline int read_unsigned(bytes_ptr* cursor, bytes_ptr end, int size_max, uint64_t* value) noexcept nogil:
    cdef bytes_ptr p = cursor[0]
    cdef uint64_t result = 0
    cdef unsigned char byte
    cdef int index
    for index in range(size_max):
        if p >= end:
            return DEFECT_VARINT
        byte = p[0]
        p += 1
        result |= (<uint64_t>(byte & 0x7F)) << (7 * index)
        if byte < 0x80:
            cursor[0] = p
            value[0] = result
            return 0
    return DEFECT_VARINT


cdef inline int read_varint(bytes_ptr* cursor, bytes_ptr end, int32_t* value) noexcept nogil:
    cdef uint64_t wide
    cdef uint32_t raw
    if cursor[0] < end and cursor[0][0] < 0x80:
        raw = cursor[0][0]
        cursor[0] += 1
    else:
        if read_unsigned(cursor, end, 5, &wide):
            return DEFECT_VARINT
        raw = <uint32_t>wide
    value[0] = <int32_t>((raw >> 1) ^ (~(raw & 1) + 1))
    return 0


cdef inline int read_varlong(bytes_ptr* cursor, bytes_ptr end, int64_t* value) noexcept nogil:
    cdef uint64_t raw
    if read_unsigned(cursor, end, 10, &raw):
        return DEFECT_VARINT
    value[0] = <int64_t>((raw >> 1) ^ (~(raw & 1) + 1))
    return 0


cdef inline int read_sized(bytes_ptr* cursor, bytes_ptr end, bytes_ptr* start, int32_t* size) noexcept nogil:
    """A size and, if it is positive, as many bytes."""
    if read_varint(cursor, end, size):
        return DEFECT_VARINT
    start[0] = cursor[0]
    if size[0] > 0:
        if size[0] > end - cursor[0]:
            return DEFECT_FIELD_SIZE
        cursor[0] += size[0]
    return 0


cdef int skip_headers(bytes_ptr* cursor, bytes_ptr end, int32_t count) noexcept nogil:
    cdef int32_t size
    cdef bytes_ptr start
    cdef int32_t index
    cdef int defect
    for index in range(count):
        if read_varint(cursor, end, &size):
            return DEFECT_VARINT
        if size < 0:
            return DEFECT_HEADER_KEY_SIZE
        if size > end - cursor[0]:
            return DEFECT_FIELD_SIZE
        cursor[0] += size
        defect = read_sized(cursor, end, &start, &size)
        if defect:
            return defect
    return 0


cdef inline int read_fields(bytes_ptr* cursor, bytes_ptr end, Fields* fields) noexcept nogil:
    """Read one record and move the cursor behind it, or return the defect."""
    cdef int32_t size
    cdef int defect
    if read_varint(cursor, end, &size):
        return DEFECT_VARINT
    if size < 0 or size > end - cursor[0]:
        return DEFECT_RECORD_SIZE
    end = cursor[0] + size
    if size == 0:
        return DEFECT_FIELD_SIZE
    cursor[0] += 1
    if read_varlong(cursor, end, &fields.timestamp_delta):
        return DEFECT_VARINT
    if read_varint(cursor, end, &fields.offset_delta):
        return DEFECT_VARINT
    defect = read_sized(cursor, end, &fields.key, &fields.key_size)
    if defect:
        return defect
    defect = read_sized(cursor, end, &fields.value, &fields.value_size)
    if defect:
        return defect
    if read_varint(cursor, end, &fields.header_count):
        return DEFECT_VARINT
    if fields.header_count < 0 or fields.header_count > end - cursor[0]:
        return DEFECT_HEADER_COUNT
    fields.headers = cursor[0]
    if fields.header_count:
        defect = skip_headers(cursor, end, fields.header_count)
        if defect:
            return defect
    if cursor[0] != end:
        return DEFECT_BODY_NOT_CONSUMED
    return 0


cdef inline int64_t wrapping_sum(int64_t left, int64_t right) noexcept nogil:
    return <int64_t>(<uint64_t>left + <uint64_t>right)


cdef int check_range(Py_buffer* view, Py_ssize_t position, Py_ssize_t end) except -1:
    if position < 0 or end < position or end > view.len:
        raise ValueError(f"no range of a buffer of {view.len} bytes: {position} to {end}")
    return 0


def walk_records(
    object buffer,
    Py_ssize_t position,
    Py_ssize_t end,
    int64_t count,
    int64_t base_timestamp,
    bint require_keys,
):
    cdef Py_buffer view
    cdef bytes_ptr cursor
    cdef bytes_ptr stop
    cdef Fields fields
    cdef int64_t max_timestamp = -1
    cdef int64_t min_timestamp = INT64_MAX
    cdef int64_t first_keyless = -1
    cdef int64_t timestamp
    cdef int64_t index = 0
    cdef int defect = 0
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        check_range(&view, position, end)
        cursor = <bytes_ptr>view.buf + position
        stop = <bytes_ptr>view.buf + end
        while index < count:
            defect = read_fields(&cursor, stop, &fields)
            if defect:
                break
            if fields.offset_delta != index:
                defect = DEFECT_OFFSET_DELTA
                break
            if require_keys and fields.key_size < 0:
                if first_keyless < 0:
                    first_keyless = index
            else:
                timestamp = wrapping_sum(base_timestamp, fields.timestamp_delta)
                if timestamp > max_timestamp:
                    max_timestamp = timestamp
                if timestamp < min_timestamp and timestamp != -1:
                    min_timestamp = timestamp
            index += 1
        if not defect and cursor != stop:
            defect = DEFECT_TRAILING_BYTES
            index = count
    finally:
        PyBuffer_Release(&view)
    if defect:
        raise InvalidRecords.of(defect, index)
    return max_timestamp, min_timestamp, first_keyless


def find_timestamp(
    object buffer, Py_ssize_t position, Py_ssize_t end, int64_t count, int64_t base_timestamp, int64_t target
):
    cdef Py_buffer view
    cdef bytes_ptr cursor
    cdef bytes_ptr stop
    cdef Fields fields
    cdef int64_t timestamp
    cdef int64_t index = 0
    cdef int defect = 0
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        check_range(&view, position, end)
        cursor = <bytes_ptr>view.buf + position
        stop = <bytes_ptr>view.buf + end
        while index < count:
            defect = read_fields(&cursor, stop, &fields)
            if defect:
                break
            timestamp = wrapping_sum(base_timestamp, fields.timestamp_delta)
            if timestamp >= target:
                return fields.offset_delta, timestamp
            index += 1
    finally:
        PyBuffer_Release(&view)
    if defect:
        raise InvalidRecords.of(defect, index)
    return None


def list_rejected(
    object buffer,
    Py_ssize_t position,
    Py_ssize_t end,
    int64_t count,
    int64_t base_timestamp,
    bint require_keys,
    int64_t earliest,
    int64_t latest,
    Py_ssize_t limit,
):
    cdef Py_buffer view
    cdef bytes_ptr cursor
    cdef bytes_ptr stop
    cdef Fields fields
    cdef int64_t timestamp
    cdef int64_t index = 0
    cdef int defect = 0
    cdef list rejected = []
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        check_range(&view, position, end)
        cursor = <bytes_ptr>view.buf + position
        stop = <bytes_ptr>view.buf + end
        while index < count and len(rejected) < limit:
            defect = read_fields(&cursor, stop, &fields)
            if defect:
                break
            timestamp = wrapping_sum(base_timestamp, fields.timestamp_delta)
            if require_keys and fields.key_size < 0:
                rejected.append((index, None))
            elif timestamp != -1 and not earliest <= timestamp <= latest:
                rejected.append((index, timestamp))
            index += 1
    finally:
        PyBuffer_Release(&view)
    if defect:
        raise InvalidRecords.of(defect, index)
    return rejected


def decode_records(
    object buffer,
    Py_ssize_t position,
    Py_ssize_t end,
    int64_t count,
    int64_t base_offset,
    int64_t base_timestamp,
    object log_append_time,
):
    cdef Py_buffer view
    cdef bytes_ptr cursor
    cdef bytes_ptr stop
    cdef Fields fields
    cdef int64_t index = 0
    cdef int defect = 0
    cdef list records = []
    cdef object timestamp
    cdef PyTypeObject* record_type = <PyTypeObject*>DecodedRecord
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        check_range(&view, position, end)
        cursor = <bytes_ptr>view.buf + position
        stop = <bytes_ptr>view.buf + end
        while index < count:
            defect = read_fields(&cursor, stop, &fields)
            if defect:
                break
            if log_append_time is None:
                timestamp = wrapping_sum(base_timestamp, fields.timestamp_delta)
            else:
                timestamp = log_append_time
            records.append(
                new_record(
                    record_type,
                    wrapping_sum(base_offset, fields.offset_delta),
                    timestamp,
                    nullable_bytes(fields.key, fields.key_size),
                    nullable_bytes(fields.value, fields.value_size),
                    decode_headers(&fields, stop) if fields.header_count else (),
                )
            )
            index += 1
        if not defect and cursor != stop:
            defect = DEFECT_TRAILING_BYTES
            index = count
    finally:
        PyBuffer_Release(&view)
    if defect:
        raise InvalidRecords.of(defect, index)
    return records


cdef inline object new_record(
    PyTypeObject* record_type, object offset, object timestamp, object key, object value, object headers
):
    cdef object record = penstock_new_tuple(record_type, 5)
    # SET_ITEM steals a reference to each field.
    Py_INCREF(offset)
    PyTuple_SET_ITEM(record, 0, offset)
    Py_INCREF(timestamp)
    PyTuple_SET_ITEM(record, 1, timestamp)
    Py_INCREF(key)
    PyTuple_SET_ITEM(record, 2, key)
    Py_INCREF(value)
    PyTuple_SET_ITEM(record, 3, value)
    Py_INCREF(headers)
    PyTuple_SET_ITEM(record, 4, headers)
    # Numbers and bytes cannot form cycles, and a consumer holds many records: spare the garbage collector the visits.
    PyObject_GC_UnTrack(<void*>record)
    return record


cdef inline object nullable_bytes(bytes_ptr start, int32_t size):
    return None if size < 0 else PyBytes_FromStringAndSize(<const char*>start, size)


cdef object decode_headers(Fields* fields, bytes_ptr stop):
    """Headers whose sizes `read_fields` has checked."""
    cdef bytes_ptr cursor = fields.headers
    cdef bytes_ptr start = NULL
    cdef int32_t size = 0
    cdef int32_t index
    cdef list headers = []
    for index in range(fields.header_count):
        read_sized(&cursor, stop, &start, &size)
        key = PyUnicode_DecodeUTF8(<const char*>start, size, "replace")
        read_sized(&cursor, stop, &start, &size)
        headers.append((key, nullable_bytes(start, size)))
    return tuple(headers)


cdef inline Py_ssize_t varint_size(int64_t value) noexcept nogil:
    cdef uint64_t raw = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    cdef Py_ssize_t size = 1
    while raw >= 0x80:
        raw >>= 7
        size += 1
    return size


cdef inline unsigned char* write_varint(unsigned char* output, int64_t value) noexcept nogil:
    cdef uint64_t raw = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    while raw >= 0x80:
        output[0] = <unsigned char>(raw & 0x7F | 0x80)
        output += 1
        raw >>= 7
    output[0] = <unsigned char>raw
    return output + 1


cdef inline unsigned char* write_bytes(unsigned char* output, bytes data) noexcept:
    cdef Py_ssize_t size
    if data is None:
        output[0] = 1
        return output + 1
    size = PyBytes_GET_SIZE(data)
    output = write_varint(output, size)
    memcpy(output, PyBytes_AS_STRING(data), size)
    return output + size


cdef inline Py_ssize_t sized_size(bytes data) noexcept:
    if data is None:
        return 1
    return varint_size(PyBytes_GET_SIZE(data)) + PyBytes_GET_SIZE(data)


cdef inline bytes as_bytes(object data):
    """Keys and values may be anything with bytes in it; they are nearly always `bytes`."""
    if data is None or PyBytes_CheckExact(data):
        return <bytes>data
    return bytes(memoryview(data))


cdef list encode_headers(object headers, Py_ssize_t* size):
    """The headers as a flat list of keys and values, with their size in the batch added to `size`."""
    cdef list flat = []
    cdef bytes item
    for key, value in headers:
        item = (<str?>key).encode()
        flat.append(item)
        size[0] += sized_size(item)
        item = as_bytes(value)
        flat.append(item)
        size[0] += sized_size(item)
    return flat


def encode_records(object records, int64_t base_timestamp, Py_ssize_t reserve_bytes):
    cdef bytearray output = bytearray(reserve_bytes)
    cdef Py_ssize_t used = reserve_bytes
    cdef Py_ssize_t capacity = reserve_bytes
    cdef Py_ssize_t body_size, needed
    cdef unsigned char* cursor
    cdef int64_t max_timestamp = -1
    cdef int64_t timestamp, timestamp_delta
    cdef int64_t offset_delta = 0
    cdef bytes key, value
    cdef list headers
    cdef object item
    for timestamp_object, key_object, value_object, header_objects in records:
        timestamp = timestamp_object
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        timestamp_delta = <int64_t>(<uint64_t>timestamp - <uint64_t>base_timestamp)
        key = as_bytes(key_object)
        value = as_bytes(value_object)
        body_size = 2 + varint_size(timestamp_delta) + varint_size(offset_delta) + sized_size(key) + sized_size(value)
        headers = None
        if header_objects:
            headers = encode_headers(header_objects, &body_size)
            body_size += varint_size(len(headers) // 2) - 1
        if body_size > INT32_MAX:
            raise OverflowError("a record is larger than 2 GiB")
        needed = used + varint_size(body_size) + body_size
        if needed > capacity:
            capacity = needed + (needed >> 1) + 256
            PyByteArray_Resize(output, capacity)
        cursor = <unsigned char*>PyByteArray_AS_STRING(output) + used
        cursor = write_varint(cursor, body_size)
        cursor[0] = 0
        cursor = write_varint(cursor + 1, timestamp_delta)
        cursor = write_varint(cursor, offset_delta)
        cursor = write_bytes(cursor, key)
        cursor = write_bytes(cursor, value)
        if headers is None:
            cursor[0] = 0
        else:
            cursor = write_varint(cursor, len(headers) // 2)
            for item in headers:
                cursor = write_bytes(cursor, <bytes>item)
        used = needed
        offset_delta += 1
    PyByteArray_Resize(output, used)
    return output, max_timestamp
