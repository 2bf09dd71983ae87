# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=False, binding=False
"""Which partition a key belongs to, in C, step for step the same as `pure_partitioning`, which explains it."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from array import array

from penstock.records._arrow cimport Column, hold, open_binary, read_row
from penstock.records._format cimport bytes_ptr

from penstock.records.arrow_access import BadColumn

NO_PARTITION = -1

cdef enum:
    SEED = 0x9747B28C
    FACTOR = 0x5BD1E995
    POSITIVE = 0x7FFFFFFF


cdef inline uint32_t hash_bytes(bytes_ptr data, Py_ssize_t size) noexcept nogil:
    cdef uint32_t factor = <uint32_t>FACTOR
    cdef uint32_t value = <uint32_t>SEED ^ <uint32_t>size
    cdef uint32_t word
    while size >= 4:
        # Java reads little-endian words; put together by shifts they are so on every machine.
        word = data[0] | <uint32_t>data[1] << 8 | <uint32_t>data[2] << 16 | <uint32_t>data[3] << 24
        word *= factor
        word ^= word >> 24
        value = value * factor ^ word * factor
        data += 4
        size -= 4
    if size:
        if size == 3:
            value ^= <uint32_t>data[2] << 16
        if size >= 2:
            value ^= <uint32_t>data[1] << 8
        value = (value ^ data[0]) * factor
    value = (value ^ value >> 13) * factor
    return value ^ value >> 15


cdef inline uint32_t hash_object(object data) except? 0:
    cdef Py_buffer view
    cdef uint32_t value
    if PyBytes_CheckExact(data):
        return hash_bytes(<bytes_ptr>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    value = hash_bytes(<bytes_ptr>view.buf, view.len)
    PyBuffer_Release(&view)
    return value


cdef inline int check_count(int64_t count) except -1:
    if not 0 < count <= POSITIVE:
        raise ValueError(f"no topic has {count} partitions")
    return 0


def murmur2(object data):
    return <int32_t>hash_object(data)


def partition_for_key(object key, int64_t count):
    check_count(count)
    return (hash_object(key) & <uint32_t>POSITIVE) % <uint32_t>count


def partition_keys(object keys, int64_t count):
    check_count(count)
    cdef list items = keys if type(keys) is list else list(keys)
    cdef object partitions = array("i", bytes(4 * len(items)))
    cdef Py_ssize_t index = 0
    cdef Py_buffer view
    cdef int32_t* output
    PyObject_GetBuffer(partitions, &view, PyBUF_WRITABLE)
    try:
        output = <int32_t*>view.buf
        for key in items:
            # The caller's own list may grow while an unusual key is read.
            if 4 * index >= view.len:
                break
            output[index] = -1 if key is None else <int32_t>((hash_object(key) & <uint32_t>POSITIVE) % <uint32_t>count)
            index += 1
    finally:
        PyBuffer_Release(&view)
    return partitions


def partition_column(object column, int64_t count):
    check_count(count)
    cdef list held = []
    cdef Column keys
    open_binary(column, &keys, held, BadColumn)
    cdef object partitions = array("i", bytes(4 * keys.length))
    cdef Py_ssize_t damaged
    cdef Py_buffer view
    PyObject_GetBuffer(partitions, &view, PyBUF_WRITABLE)
    try:
        with nogil:
            damaged = partition_rows(&keys, <uint32_t>count, <int32_t*>view.buf)
    finally:
        PyBuffer_Release(&view)
    if damaged >= 0:
        raise BadColumn(f"row {damaged} lies outside of the data")
    return partitions


cdef Py_ssize_t partition_rows(Column* keys, uint32_t count, int32_t* output) noexcept nogil:
    """The first damaged row, or -1."""
    cdef Py_ssize_t row, size
    cdef bytes_ptr key = NULL
    for row in range(keys.length):
        if not read_row(keys, row, &key, &size):
            return row
        output[row] = -1 if size < 0 else <int32_t>((hash_bytes(key, size) & <uint32_t>POSITIVE) % count)
    return -1


def group_rows(object partitions, int64_t count):
    check_count(count)
    cdef list held = []
    cdef Py_ssize_t size
    cdef bytes_ptr numbers = hold(partitions, held, &size)
    if size & 3:
        raise TypeError("the partitions are not 32-bit numbers")
    cdef Py_ssize_t length = size >> 2
    cdef object rows = array("q", bytes(8 * length))
    cdef Py_ssize_t* ends = <Py_ssize_t*>calloc(count + 2, sizeof(Py_ssize_t))
    if ends == NULL:
        raise MemoryError
    cdef Py_buffer view
    cdef Py_ssize_t damaged
    try:
        PyObject_GetBuffer(rows, &view, PyBUF_WRITABLE)
        with nogil:
            damaged = sort_rows(numbers, length, count, ends, <int64_t*>view.buf)
        PyBuffer_Release(&view)
        if damaged >= 0:
            at = (<const int32_t*>numbers)[damaged]
            raise ValueError(f"row {damaged} has the partition {at}, but there are {count}")
        bounds = [0] + [ends[index] for index in range(count + 1)]
    finally:
        free(ends)
    return rows, bounds


cdef Py_ssize_t sort_rows(
    bytes_ptr numbers, Py_ssize_t length, int64_t count, Py_ssize_t* ends, int64_t* rows
) noexcept nogil:
    """A counting sort; leaves the end of every group in `ends`. The first row with no possible partition, or -1."""
    cdef Py_ssize_t row, slot, total = 0, size
    cdef int32_t partition
    for row in range(length):
        memcpy(&partition, numbers + 4 * row, 4)
        if partition < -1 or partition >= count:
            return row
        ends[count if partition < 0 else partition] += 1
    for slot in range(count + 1):
        size = ends[slot]
        ends[slot] = total
        total += size
    for row in range(length):
        memcpy(&partition, numbers + 4 * row, 4)
        slot = count if partition < 0 else partition
        # Another thread may write to the caller's numbers.
        if slot > count or ends[slot] >= length:
            return row
        rows[ends[slot]] = row
        ends[slot] += 1
    return -1
