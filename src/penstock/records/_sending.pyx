# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=False, binding=False
"""The short way of a producer's record into an open batch, in C; `pure_sending` explains it.

No lock is taken here unless there is a callback to keep: from the look at the open batch to the end of the append
nothing can let another thread run, because nothing is called that may run Python, and nothing is made that the garbage
collector counts. Whoever closes a batch takes its bytes first and reads its count then (`ProducerBatch.close`), and
a batch that was taken, or that another thread is filling without the interpreter's lock, is left alone.
"""

from cpython.bytes cimport PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyTypeObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int64_t

from penstock.records._format cimport encode_headers
from penstock.records._writing cimport BatchWriter

from penstock.records._partitioning import partition_for_key as _partition_for_key

cdef extern from *:
    """
    /* What calling the type does, without `__init__`. */
    static PyObject *penstock_new_object(PyTypeObject *type, PyObject *nothing) {
        return type->tp_new(type, nothing, NULL);
    }
    """
    object penstock_new_object(PyTypeObject* type, object nothing)

cdef object partition_for_key = _partition_for_key
cdef tuple NOTHING = ()


cdef class Receipt:
    cdef readonly object _batch
    cdef readonly Py_ssize_t _index
    cdef readonly int64_t _timestamp
    cdef readonly Py_ssize_t _key_size
    cdef readonly Py_ssize_t _value_size

    def __init__(self, batch, Py_ssize_t index, int64_t timestamp, Py_ssize_t key_size, Py_ssize_t value_size):
        self._batch = batch
        self._index = index
        self._timestamp = timestamp
        self._key_size = key_size
        self._value_size = value_size


cdef class ShortWay:
    cdef public bint is_open
    cdef dict topics
    cdef type receipt_type
    cdef object time_ns
    cdef object read_headers
    cdef bint ignore_keys

    def __init__(self, dict topics, type receipt_type, *, time_ns, read_headers, bint ignore_keys=False):
        if not issubclass(receipt_type, Receipt):
            raise TypeError(f"{receipt_type} is no Receipt")
        self.is_open = True
        self.topics = topics
        self.receipt_type = receipt_type
        self.time_ns = time_ns
        self.read_headers = read_headers
        self.ignore_keys = ignore_keys

    def send(
        self, object topic, object value, object key, object partition, object timestamp_ms, object headers,
        object on_delivery,
    ):
        cdef Py_ssize_t chosen
        cdef Py_ssize_t headers_size = 0
        cdef int64_t timestamp
        cdef list flat = None
        cdef object queues, queue
        if not self.is_open or not PyUnicode_CheckExact(topic) or not is_plain(key) or not is_plain(value):
            return None
        queues = self.topics.get(topic)
        if queues is None:
            return None
        if partition is None:
            chosen = self.choose(queues, key)
        elif PyLong_CheckExact(partition):
            chosen = partition
        else:
            return None
        if chosen < 0 or chosen >= <Py_ssize_t>queues.count:
            return None
        if headers is not None:
            flat = encode_headers(self.read_headers(headers), &headers_size) or None
        if timestamp_ms is None:
            timestamp = <int64_t>self.time_ns() // 1000000
        else:
            timestamp = timestamp_ms
        queue = (<tuple?>queues.queues)[chosen]
        if on_delivery is None:
            return self.append(queue, timestamp, key, value, flat, headers_size)
        with queue.lock:
            receipt = self.append(queue, timestamp, key, value, flat, headers_size)
            if receipt is not None:
                (<Receipt>receipt)._batch.add_callback(receipt, on_delivery)
        return receipt

    cdef inline Py_ssize_t choose(self, object queues, object key) except -2:
        """Minus one when that takes more than a look."""
        if key is None or self.ignore_keys:
            return queues.keyless.current
        return partition_for_key(key, queues.count) if queues.count else -1

    cdef inline object append(
        self, object queue, int64_t timestamp, bytes key, bytes value, list headers, Py_ssize_t headers_size
    ):
        cdef object batch = queue.open
        cdef object writer
        cdef Py_ssize_t index
        cdef Receipt receipt
        if batch is None:
            return None
        writer = batch.writer
        if writer is None or (<BatchWriter?>writer).busy:
            return None
        index = (<BatchWriter>writer).add(timestamp, key, value, headers, headers_size)
        if index < 0:
            return None
        receipt = <Receipt>penstock_new_object(<PyTypeObject*>self.receipt_type, NOTHING)
        receipt._batch = batch
        receipt._index = index
        receipt._timestamp = timestamp
        receipt._key_size = size_of(key)
        receipt._value_size = size_of(value)
        return receipt


cdef inline bint is_plain(object data) noexcept:
    return data is None or PyBytes_CheckExact(data)


cdef inline Py_ssize_t size_of(bytes data) noexcept:
    return -1 if data is None else PyBytes_GET_SIZE(data)
