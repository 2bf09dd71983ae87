# cython: language_level=3
"""What the other modules of the kernel may use of a growing batch."""

from libc.stdint cimport int64_t


cdef class BatchWriter:
    cdef bytearray output
    cdef Py_ssize_t size_max
    cdef Py_ssize_t capacity
    cdef bint busy
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t size
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp

    cdef int reserve(self, Py_ssize_t needed) except -1
    cdef int check_free(self) except -1
    cdef Py_ssize_t add(
        self, int64_t timestamp, bytes key, bytes value, list headers, Py_ssize_t headers_size
    ) except -2
