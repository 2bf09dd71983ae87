# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns in C, step for step the same as `arrow_access`: raw pointers, and every row held against its buffers."""

from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

from penstock.records._format cimport bytes_ptr

cdef struct Column:
    # What a column's buffers hold; `data` is NULL for lists, whose `data_size` is the number of children.
    bint present
    bint wide
    bytes_ptr validity
    bytes_ptr offsets
    bytes_ptr data
    Py_ssize_t data_size
    Py_ssize_t offset
    Py_ssize_t length


cdef inline bytes_ptr hold(object buffer, list held, Py_ssize_t* size) except? NULL:
    """The address of a buffer, which stays valid as long as `held` does."""
    cdef Py_buffer* view
    if buffer is None:
        size[0] = 0
        return NULL
    item = memoryview(buffer).cast("B")
    held.append(item)
    view = PyMemoryView_GET_BUFFER(item)
    size[0] = view.len
    return <bytes_ptr>view.buf


cdef inline int open_rows(object column, Column* into, list held, object error) except -1:
    """What all columns have: the range of rows and the validity."""
    cdef Py_ssize_t size
    into.present = True
    into.wide = False
    into.length = column.length
    into.offset = column.offset
    into.offsets = into.data = NULL
    into.data_size = 0
    if into.length < 0 or into.offset < 0 or into.offset > (1 << 60) or into.length > (1 << 60):
        raise error("a negative length or offset")
    into.validity = hold(column.validity, held, &size)
    if column.validity is not None and size * 8 < into.offset + into.length:
        raise error("its validity is shorter than the column")
    return 0


cdef inline int open_lists(object column, Column* into, list held, object error) except -1:
    """The offsets of byte strings or of lists."""
    cdef Py_ssize_t size
    open_rows(column, into, held, error)
    into.wide = column.wide
    if into.length:
        into.offsets = hold(column.offsets, held, &size)
        if size < (8 if into.wide else 4) * (into.offset + into.length + 1):
            raise error("it has fewer numbers than rows")
    return 0


cdef inline int open_binary(object column, Column* into, list held, object error) except -1:
    open_lists(column, into, held, error)
    into.data = hold(column.data, held, &into.data_size)
    return 0


cdef inline int open_longs(object column, Column* into, list held, object error) except -1:
    open_rows(column, into, held, error)
    into.data = hold(column.data, held, &into.data_size)
    if into.data_size < 8 * (into.offset + into.length):
        raise error("it has fewer numbers than rows")
    return 0


cdef inline bint is_valid(Column* column, Py_ssize_t row) noexcept nogil:
    cdef Py_ssize_t at = column.offset + row
    return column.validity == NULL or column.validity[at >> 3] >> (at & 7) & 1


cdef inline bint read_bounds(Column* column, Py_ssize_t row, int64_t* start, int64_t* stop) noexcept nogil:
    """Where a row lies in the data; false when that is outside."""
    cdef int32_t narrow[2]
    cdef int64_t wide[2]
    if column.wide:
        memcpy(wide, column.offsets + 8 * (column.offset + row), 16)
        start[0] = wide[0]
        stop[0] = wide[1]
    else:
        memcpy(narrow, column.offsets + 4 * (column.offset + row), 8)
        start[0] = narrow[0]
        stop[0] = narrow[1]
    return 0 <= start[0] <= stop[0] <= column.data_size


cdef inline bint read_row(Column* column, Py_ssize_t row, bytes_ptr* start, Py_ssize_t* size) noexcept nogil:
    """The bytes of a row, of size -1 when it is null; false when its offsets are damaged."""
    cdef int64_t first, last
    if not column.present or not is_valid(column, row):
        size[0] = -1
        return True
    if not read_bounds(column, row, &first, &last):
        return False
    start[0] = column.data + first
    size[0] = last - first
    return True


cdef inline int64_t read_long(Column* column, Py_ssize_t row, int64_t default) noexcept nogil:
    cdef int64_t value
    if not column.present or not is_valid(column, row):
        return default
    memcpy(&value, column.data + 8 * (column.offset + row), 8)
    return value
