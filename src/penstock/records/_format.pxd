# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One record as bytes, in C, step for step the same as `pure_format`, which explains it and is its reference.

All pointer arithmetic on records is here and guarded here: every read is held against the end of its record, every
record against the end of the range, and the range against the buffer. The modules of the kernel compile these
functions into themselves; there is no module of this name at run time.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

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


cdef inline void set_field(object record, Py_ssize_t index, object value) noexcept:
    # SET_ITEM steals a reference.
    Py_INCREF(value)
    PyTuple_SET_ITEM(record, index, value)


cdef inline int32_t read_int32(bytes_ptr p) noexcept nogil:
    return <int32_t>(<uint32_t>p[0] << 24 | <uint32_t>p[1] << 16 | <uint32_t>p[2] << 8 | p[3])


cdef inline int64_t read_int64(bytes_ptr p) noexcept nogil:
    return <int64_t>(<uint64_t><uint32_t>read_int32(p) << 32 | <uint32_t>read_int32(p + 4))


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


cdef inline int skip_headers(bytes_ptr* cursor, bytes_ptr end, int32_t count) noexcept nogil:
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


cdef inline int64_t wrapping_difference(int64_t left, int64_t right) noexcept nogil:
    return <int64_t>(<uint64_t>left - <uint64_t>right)


cdef inline int check_range(Py_buffer* view, Py_ssize_t position, Py_ssize_t end) except -1:
    if position < 0 or end < position or end > view.len:
        raise ValueError(f"no range of a buffer of {view.len} bytes: {position} to {end}")
    return 0


cdef inline object nullable_bytes(bytes_ptr start, int32_t size):
    return None if size < 0 else PyBytes_FromStringAndSize(<const char*>start, size)


cdef inline object decode_headers(Fields* fields, bytes_ptr stop):
    """Headers that `read_fields` has found well-formed."""
    cdef bytes_ptr cursor = fields.headers
    cdef bytes_ptr start = NULL
    cdef int32_t size = 0
    cdef int32_t index
    cdef list headers = []
    for index in range(fields.header_count):
        if read_sized(&cursor, stop, &start, &size) or size < 0:
            raise RuntimeError("the records changed while they were read")
        key = PyUnicode_DecodeUTF8(<const char*>start, size, "replace")
        if read_sized(&cursor, stop, &start, &size):
            raise RuntimeError("the records changed while they were read")
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


cdef inline list encode_headers(object headers, Py_ssize_t* size):
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


cdef inline Py_ssize_t body_size_of(
    int64_t timestamp_delta, int64_t offset_delta, bytes key, bytes value, list headers, Py_ssize_t headers_size
) noexcept:
    """The size of a record without the size in front of it. `headers_size` is that of the flat list alone."""
    cdef Py_ssize_t size = 1 + varint_size(timestamp_delta) + varint_size(offset_delta) + sized_size(key)
    size += sized_size(value)
    if headers is None:
        return size + 1
    return size + varint_size(len(headers) // 2) + headers_size


cdef inline void write_record(
    unsigned char* cursor,
    Py_ssize_t body_size,
    int64_t timestamp_delta,
    int64_t offset_delta,
    bytes key,
    bytes value,
    list headers,
) noexcept:
    """Write a record of the size that `body_size_of` gave."""
    cursor = write_varint(cursor, body_size)
    cursor[0] = 0
    cursor = write_varint(cursor + 1, timestamp_delta)
    cursor = write_varint(cursor, offset_delta)
    cursor = write_bytes(cursor, key)
    cursor = write_bytes(cursor, value)
    if headers is None:
        cursor[0] = 0
        return
    cursor = write_varint(cursor, len(headers) // 2)
    for item in headers:
        cursor = write_bytes(cursor, <bytes>item)
