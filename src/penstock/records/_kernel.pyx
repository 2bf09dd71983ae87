# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=False, binding=False
"""The record kernel in C, step for step the same as `pure_kernel`, which explains it and is its reference.

Buffers are taken through the plain buffer protocol, for a typed memoryview costs more than walking a small batch.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from cpython.object cimport PyTypeObject
from libc.stdint cimport INT32_MAX, INT64_MAX, int64_t

from penstock.records._format cimport (
    DEFECT_OFFSET_DELTA, DEFECT_TRAILING_BYTES, Fields, PyObject_GC_UnTrack, as_bytes, body_size_of, bytes_ptr,
    check_range, decode_headers, encode_headers, nullable_bytes, penstock_new_tuple, read_fields, set_field,
    varint_size, wrapping_difference, wrapping_sum, write_record,
)

from penstock.records.errors import InvalidRecords
from penstock.records.record import DecodedRecord

COMPILED = True
NO_MIN_TIMESTAMP = INT64_MAX


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
    set_field(record, 0, offset)
    set_field(record, 1, timestamp)
    set_field(record, 2, key)
    set_field(record, 3, value)
    set_field(record, 4, headers)
    # As for a consumer's records: nothing in it can form a cycle.
    PyObject_GC_UnTrack(<void*>record)
    return record


def encode_records(object records, int64_t base_timestamp, Py_ssize_t reserve_bytes):
    cdef bytearray output = bytearray(reserve_bytes)
    cdef Py_ssize_t used = reserve_bytes
    cdef Py_ssize_t capacity = reserve_bytes
    cdef Py_ssize_t body_size, needed, headers_size
    cdef int64_t max_timestamp = -1
    cdef int64_t timestamp, timestamp_delta
    cdef int64_t offset_delta = 0
    cdef bytes key, value
    cdef list headers
    for timestamp_object, key_object, value_object, header_objects in records:
        timestamp = timestamp_object
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        timestamp_delta = wrapping_difference(timestamp, base_timestamp)
        key = as_bytes(key_object)
        value = as_bytes(value_object)
        headers_size = 0
        headers = encode_headers(header_objects, &headers_size) if header_objects else None
        body_size = body_size_of(timestamp_delta, offset_delta, key, value, headers, headers_size)
        if body_size > INT32_MAX:
            raise OverflowError("a record is larger than 2 GiB")
        needed = used + varint_size(body_size) + body_size
        if needed > capacity:
            capacity = needed + (needed >> 1) + 256
            PyByteArray_Resize(output, capacity)
        write_record(
            <unsigned char*>PyByteArray_AS_STRING(output) + used,
            body_size, timestamp_delta, offset_delta, key, value, headers,
        )
        used = needed
        offset_delta += 1
    PyByteArray_Resize(output, used)
    return output, max_timestamp
