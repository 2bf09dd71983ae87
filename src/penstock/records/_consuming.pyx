# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=False, binding=False
"""Records and columns for consumers, in C, step for step the same as `pure_consuming`, which explains it.

A filler makes room for all that a batch can hold before it walks it, so the walk itself needs no Python and no checks
of capacity: a record has at least seven bytes, and keys and values together are never larger than the batch. Headers
follow in a second walk, for the few consumers that ask for them.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.object cimport PyTypeObject
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT32_MAX, int8_t, int32_t, int64_t, uint32_t
from libc.string cimport memcpy

from penstock.records._format cimport (
    DEFECT_TRAILING_BYTES, Fields, PyObject_GC_UnTrack, bytes_ptr, check_range, decode_headers, nullable_bytes,
    penstock_new_tuple, read_fields, read_int32, read_int64, read_sized, set_field, wrapping_sum,
)

from penstock.records.columns import BinaryColumn, HeaderColumn, RecordColumns
from penstock.records.errors import InvalidRecords
from penstock.records.record import ConsumerRecord

cdef enum:
    RECORD_SIZE_MIN = 7
    # Of the header of a batch, see `batch`.
    LOG_OVERHEAD = 12
    HEADER_SIZE = 61
    MAGIC = 2
    TIMESTAMP_TYPE_MASK = 0x08
    # Below this many bytes, giving up the interpreter's lock costs more than it yields.
    RELEASE_BYTES = 262144


def decode_consumer_records(
    object buffer,
    Py_ssize_t position,
    Py_ssize_t end,
    int64_t count,
    int64_t base_offset,
    int64_t base_timestamp,
    object append_time,
    object topic,
    object partition,
    object leader_epoch,
    int64_t from_offset,
):
    cdef Py_buffer view
    cdef bytes_ptr cursor
    cdef bytes_ptr stop
    cdef Fields fields
    cdef int64_t offset, stamp
    cdef int64_t index = 0
    cdef int64_t last_stamp = 0
    cdef int defect = 0
    cdef list records = []
    cdef object timestamp = 0 if append_time is None else append_time
    cdef object timestamp_type = 0 if append_time is None else 1
    cdef bint stamped = append_time is not None
    cdef PyTypeObject* record_type = <PyTypeObject*>ConsumerRecord
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        check_range(&view, position, end)
        cursor = <bytes_ptr>view.buf + position
        stop = <bytes_ptr>view.buf + end
        while index < count:
            defect = read_fields(&cursor, stop, &fields)
            if defect:
                break
            index += 1
            offset = wrapping_sum(base_offset, fields.offset_delta)
            if offset < from_offset:
                continue
            if not stamped:
                stamp = wrapping_sum(base_timestamp, fields.timestamp_delta)
                # Neighbours often share a timestamp: they share the object too.
                if stamp != last_stamp:
                    timestamp = last_stamp = stamp
            headers = decode_headers(&fields, stop) if fields.header_count else ()
            key = nullable_bytes(fields.key, fields.key_size)
            value = nullable_bytes(fields.value, fields.value_size)
            records.append(
                new_record(
                    record_type, topic, partition, offset, timestamp, timestamp_type, key, value, headers, leader_epoch
                )
            )
        if not defect and cursor != stop:
            defect = DEFECT_TRAILING_BYTES
    finally:
        PyBuffer_Release(&view)
    if defect:
        raise InvalidRecords.of(defect, count if defect == DEFECT_TRAILING_BYTES else index)
    return records


cdef inline object new_record(
    PyTypeObject* record_type,
    object topic,
    object partition,
    object offset,
    object timestamp,
    object timestamp_type,
    object key,
    object value,
    object headers,
    object leader_epoch,
):
    cdef object record = penstock_new_tuple(record_type, 9)
    set_field(record, 0, topic)
    set_field(record, 1, partition)
    set_field(record, 2, offset)
    set_field(record, 3, timestamp)
    set_field(record, 4, timestamp_type)
    set_field(record, 5, key)
    set_field(record, 6, value)
    set_field(record, 7, headers)
    set_field(record, 8, leader_epoch)
    # Numbers and bytes cannot form cycles, and a consumer holds many records: spare the collector the visits.
    PyObject_GC_UnTrack(<void*>record)
    return record


cdef unsigned char* reserve(bytearray buffer, Py_ssize_t needed) except NULL:
    """Make a buffer at least that large, with some room to grow; its address."""
    cdef Py_ssize_t size = PyByteArray_GET_SIZE(buffer)
    if needed > size:
        PyByteArray_Resize(buffer, max(needed, size + (size >> 1)))
    return <unsigned char*>PyByteArray_AS_STRING(buffer)


cdef struct BinarySink:
    int32_t* offsets
    unsigned char* data
    unsigned char* validity
    int64_t data_size
    Py_ssize_t null_count


cdef class GrowingBinary:
    """A growing column of byte strings; its buffers are larger than what is in use until `column` cuts them."""

    cdef bytearray offsets
    cdef bytearray data
    cdef bytearray validity
    cdef BinarySink sink

    def __cinit__(self):
        self.offsets = bytearray(4)
        self.data = bytearray()
        self.validity = bytearray()
        self.sink.data_size = 0
        self.sink.null_count = 0

    cdef int make_room(self, Py_ssize_t rows, Py_ssize_t data_bytes) except -1:
        """For `rows` rows in all, and `data_bytes` more bytes."""
        self.sink.offsets = <int32_t*>reserve(self.offsets, 4 * (rows + 1))
        self.sink.validity = reserve(self.validity, (rows + 7) >> 3)
        self.sink.data = reserve(self.data, self.sink.data_size + data_bytes)
        return 0

    cdef object column(self, Py_ssize_t rows):
        PyByteArray_Resize(self.offsets, 4 * (rows + 1))
        PyByteArray_Resize(self.validity, (rows + 7) >> 3)
        PyByteArray_Resize(self.data, self.sink.data_size)
        return BinaryColumn(
            length=rows,
            offsets=self.offsets,
            data=self.data,
            validity=self.validity if self.sink.null_count else None,
            null_count=self.sink.null_count,
        )


cdef inline void add_binary(BinarySink* sink, Py_ssize_t row, bytes_ptr start, int32_t size) noexcept nogil:
    cdef Py_ssize_t bit = row & 7
    if bit == 0:
        sink.validity[row >> 3] = 0
    if size < 0:
        sink.null_count += 1
    else:
        sink.validity[row >> 3] |= <unsigned char>(1 << bit)
        memcpy(sink.data + sink.data_size, start, size)
        sink.data_size += size
    sink.offsets[row + 1] = <int32_t>sink.data_size


cdef void cut_validity(BinarySink* sink, Py_ssize_t rows) noexcept:
    """Clear the bits of rows that are taken back and share a byte with one that stays."""
    if rows & 7:
        sink.validity[rows >> 3] &= <unsigned char>((1 << (rows & 7)) - 1)


cdef struct Batch:
    bytes_ptr cursor
    bytes_ptr stop
    int64_t count
    int64_t base_offset
    int64_t base_timestamp
    int64_t from_offset
    int64_t append_time
    int32_t topic
    int32_t partition
    bint stamped
    # What the walk found.
    int64_t index
    int64_t next_offset
    int64_t header_bytes
    bint full

cdef struct Sinks:
    Py_ssize_t rows
    Py_ssize_t rows_max
    int64_t bytes_max
    bint with_headers
    int32_t* topics
    int32_t* partitions
    int64_t* offsets
    int64_t* timestamps
    int8_t* timestamp_types


cdef class ColumnFiller:
    cdef Py_ssize_t rows_max
    cdef int64_t bytes_max
    cdef readonly Py_ssize_t rows
    cdef readonly bint full
    cdef readonly int64_t next_offset
    cdef readonly int32_t leader_epoch
    cdef bint busy
    cdef bint taken
    cdef bint with_headers
    cdef int64_t header_bytes
    cdef Py_ssize_t header_rows
    cdef bytearray topics
    cdef bytearray partitions
    cdef bytearray offsets
    cdef bytearray timestamps
    cdef bytearray timestamp_types
    cdef GrowingBinary keys
    cdef GrowingBinary values
    cdef bytearray header_offsets
    cdef GrowingBinary header_keys
    cdef GrowingBinary header_values

    def __cinit__(self, Py_ssize_t rows_max, object bytes_max=INT32_MAX, bint headers=False):
        self.rows_max = max(rows_max, 0)
        self.bytes_max = max(min(bytes_max, INT32_MAX), -1)
        self.full = self.rows_max == 0
        self.next_offset = -1
        self.leader_epoch = -1
        self.with_headers = headers
        self.topics = bytearray()
        self.partitions = bytearray()
        self.offsets = bytearray()
        self.timestamps = bytearray()
        self.timestamp_types = bytearray()
        self.keys = GrowingBinary()
        self.values = GrowingBinary()
        self.header_offsets = bytearray(4)
        self.header_keys = GrowingBinary()
        self.header_values = GrowingBinary()

    def fill(
        self,
        object buffer,
        Py_ssize_t position,
        Py_ssize_t end,
        int64_t count,
        int64_t base_offset,
        int64_t base_timestamp,
        object append_time,
        int32_t topic,
        int32_t partition,
        int64_t from_offset,
    ):
        cdef Py_buffer view
        cdef Batch batch
        cdef Py_ssize_t before = self.rows
        batch.count = count
        batch.base_offset = base_offset
        batch.base_timestamp = base_timestamp
        batch.from_offset = from_offset
        batch.stamped = append_time is not None
        batch.append_time = append_time if batch.stamped else 0
        batch.topic = topic
        batch.partition = partition
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            check_range(&view, position, end)
            self.check_free()
            batch.cursor = <bytes_ptr>view.buf + position
            batch.stop = <bytes_ptr>view.buf + end
            self.add_batch(&batch, end - position)
        finally:
            PyBuffer_Release(&view)
        return self.rows - before

    def fill_run(
        self,
        object buffer,
        Py_ssize_t position,
        Py_ssize_t end,
        int special_mask,
        object crc_of,
        int32_t topic,
        int32_t partition,
        int64_t from_offset,
    ):
        cdef Py_buffer view
        cdef bytes_ptr header
        cdef int64_t size, last_offset
        cdef Batch batch
        batch.topic = topic
        batch.partition = partition
        frame = memoryview(buffer)
        PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE)
        try:
            check_range(&view, position, end)
            self.check_free()
            self.values.make_room(self.rows, end - position)
            while not self.full and end - position >= HEADER_SIZE:
                header = <bytes_ptr>view.buf + position
                size = <int64_t>read_int32(header + 8) + LOG_OVERHEAD
                if size < HEADER_SIZE or size > end - position or header[16] != MAGIC or header[22] & special_mask:
                    break
                if crc_of is not None and <uint32_t>read_int32(header + 17) != <uint32_t>crc_of(
                    frame[position + 21:position + size]
                ):
                    break
                batch.base_offset = read_int64(header)
                last_offset = wrapping_sum(batch.base_offset, read_int32(header + 23))
                if last_offset >= from_offset:
                    batch.cursor = header + HEADER_SIZE
                    batch.stop = header + size
                    batch.count = read_int32(header + 57)
                    batch.base_timestamp = read_int64(header + 27)
                    batch.append_time = read_int64(header + 35)
                    batch.stamped = header[22] & TIMESTAMP_TYPE_MASK != 0
                    batch.from_offset = self.next_offset = from_offset
                    try:
                        self.add_batch(&batch, size - HEADER_SIZE)
                    except InvalidRecords:
                        break
                    self.leader_epoch = read_int32(header + 12)
                    if not self.full:
                        self.next_offset = wrapping_sum(last_offset, 1)
                    from_offset = max(from_offset, self.next_offset)
                    if from_offset <= last_offset:
                        break
                position += size
        finally:
            PyBuffer_Release(&view)
        return position, from_offset

    cdef int check_free(self) except -1:
        if self.taken:
            raise ValueError("the columns were taken already")
        if self.busy:
            raise RuntimeError("another thread is using this filler")
        return 0

    cdef int add_batch(self, Batch* batch, Py_ssize_t size) except -1:
        cdef Sinks sinks
        cdef BinarySink keys, values
        cdef bytes_ptr start = batch.cursor
        cdef int defect
        self.make_room(&sinks, batch.count, size)
        keys = self.keys.sink
        values = self.values.sink
        batch.index = 0
        batch.next_offset = self.next_offset
        batch.header_bytes = self.header_bytes
        batch.full = False
        if size >= RELEASE_BYTES:
            self.busy = True
            with nogil:
                defect = walk(batch, &sinks, &keys, &values)
            self.busy = False
        else:
            defect = walk(batch, &sinks, &keys, &values)
        if defect:
            cut_validity(&self.keys.sink, self.rows)
            cut_validity(&self.values.sink, self.rows)
            raise InvalidRecords.of(defect, batch.index)
        if self.with_headers:
            batch.cursor = start
            try:
                self.add_headers(batch, sinks.rows)
            except BaseException:
                cut_validity(&self.keys.sink, self.rows)
                cut_validity(&self.values.sink, self.rows)
                raise
        self.keys.sink = keys
        self.values.sink = values
        self.rows = sinks.rows
        self.header_bytes = batch.header_bytes
        self.next_offset = batch.next_offset
        self.full = batch.full
        return 0

    cdef int make_room(self, Sinks* sinks, int64_t count, Py_ssize_t size) except -1:
        cdef Py_ssize_t more = min(min(count, size // RECORD_SIZE_MIN + 1), self.rows_max - self.rows)
        cdef Py_ssize_t rows = self.rows + max(0, more)
        sinks.rows = self.rows
        sinks.rows_max = self.rows_max
        sinks.bytes_max = self.bytes_max
        sinks.with_headers = self.with_headers
        sinks.topics = <int32_t*>reserve(self.topics, 4 * rows)
        sinks.partitions = <int32_t*>reserve(self.partitions, 4 * rows)
        sinks.offsets = <int64_t*>reserve(self.offsets, 8 * rows)
        sinks.timestamps = <int64_t*>reserve(self.timestamps, 8 * rows)
        sinks.timestamp_types = <int8_t*>reserve(self.timestamp_types, rows)
        reserve(self.header_offsets, 4 * (rows + 1))
        self.keys.make_room(rows, size)
        self.values.make_room(rows, size)
        return 0

    cdef int add_headers(self, Batch* batch, Py_ssize_t rows) except -1:
        """The headers of the rows that the walk has added, which the filler does not count yet."""
        cdef Fields fields
        cdef Py_ssize_t row = self.rows
        cdef Py_ssize_t header_row = self.header_rows
        cdef BinarySink keys = self.header_keys.sink
        cdef BinarySink values = self.header_values.sink
        cdef int32_t* offsets = <int32_t*>PyByteArray_AS_STRING(self.header_offsets)
        try:
            while row < rows:
                if read_fields(&batch.cursor, batch.stop, &fields):
                    raise RuntimeError("the records changed while they were read")
                if wrapping_sum(batch.base_offset, fields.offset_delta) < batch.from_offset:
                    continue
                if fields.header_count:
                    self.add_row_headers(&fields, batch.cursor)
                row += 1
                offsets[row] = <int32_t>self.header_rows
        except BaseException:
            self.header_rows = header_row
            self.header_keys.sink.data_size = keys.data_size
            self.header_values.sink.data_size = values.data_size
            self.header_values.sink.null_count = values.null_count
            cut_validity(&self.header_keys.sink, header_row)
            cut_validity(&self.header_values.sink, header_row)
            raise
        return 0

    cdef int add_row_headers(self, Fields* fields, bytes_ptr stop) except -1:
        cdef bytes_ptr cursor = fields.headers
        cdef bytes_ptr start = NULL
        cdef int32_t size = 0
        cdef int32_t index
        cdef Py_ssize_t row = self.header_rows
        cdef bytes text
        # A byte of a key that is not UTF-8 becomes three.
        self.header_keys.make_room(row + fields.header_count, 3 * (stop - fields.headers))
        self.header_values.make_room(row + fields.header_count, stop - fields.headers)
        for index in range(fields.header_count):
            if read_sized(&cursor, stop, &start, &size) or size < 0:
                raise RuntimeError("the records changed while they were read")
            if is_ascii(start, size):
                add_binary(&self.header_keys.sink, row, start, size)
            else:
                text = PyUnicode_DecodeUTF8(<const char*>start, size, "replace").encode()
                if self.header_keys.sink.data_size + len(text) > INT32_MAX:
                    raise OverflowError("a column is larger than 2 GiB")
                add_binary(&self.header_keys.sink, row, <bytes_ptr><const char*>text, <int32_t>len(text))
            if read_sized(&cursor, stop, &start, &size):
                raise RuntimeError("the records changed while they were read")
            add_binary(&self.header_values.sink, row, start, size)
            row += 1
        self.header_rows = row
        return 0

    def take(self):
        self.check_free()
        self.taken = True
        PyByteArray_Resize(self.topics, 4 * self.rows)
        PyByteArray_Resize(self.partitions, 4 * self.rows)
        PyByteArray_Resize(self.offsets, 8 * self.rows)
        PyByteArray_Resize(self.timestamps, 8 * self.rows)
        PyByteArray_Resize(self.timestamp_types, self.rows)
        PyByteArray_Resize(self.header_offsets, 4 * (self.rows + 1))
        headers = None
        if self.with_headers:
            headers = HeaderColumn(
                length=self.rows,
                offsets=self.header_offsets,
                keys=self.header_keys.column(self.header_rows),
                values=self.header_values.column(self.header_rows),
            )
        return RecordColumns(
            rows=self.rows,
            topics=self.topics,
            partitions=self.partitions,
            offsets=self.offsets,
            timestamps=self.timestamps,
            timestamp_types=self.timestamp_types,
            keys=self.keys.column(self.rows),
            values=self.values.column(self.rows),
            headers=headers,
        )


cdef inline bint is_ascii(bytes_ptr start, int32_t size) noexcept nogil:
    cdef int32_t index
    for index in range(size):
        if start[index] >= 0x80:
            return False
    return True


cdef int walk(Batch* batch, Sinks* sinks, BinarySink* keys, BinarySink* values) noexcept nogil:
    """Add the batch's records to the sinks, all of which have room; the defect, or 0."""
    cdef Fields fields
    cdef bytes_ptr cursor = batch.cursor
    cdef int64_t offset, header_bytes
    cdef Py_ssize_t row = sinks.rows
    cdef int defect
    while batch.index < batch.count:
        defect = read_fields(&cursor, batch.stop, &fields)
        if defect:
            return defect
        offset = wrapping_sum(batch.base_offset, fields.offset_delta)
        if offset >= batch.from_offset:
            header_bytes = 3 * (cursor - fields.headers)
            if row >= sinks.rows_max or not has_room(batch, sinks, row, keys, values, &fields, header_bytes):
                batch.full = True
                sinks.rows = row
                return 0
            sinks.topics[row] = batch.topic
            sinks.partitions[row] = batch.partition
            sinks.offsets[row] = offset
            sinks.timestamps[row] = (
                batch.append_time if batch.stamped else wrapping_sum(batch.base_timestamp, fields.timestamp_delta)
            )
            sinks.timestamp_types[row] = batch.stamped
            add_binary(keys, row, fields.key, fields.key_size)
            add_binary(values, row, fields.value, fields.value_size)
            if sinks.with_headers:
                batch.header_bytes += header_bytes
            row += 1
        batch.next_offset = wrapping_sum(offset, 1)
        batch.index += 1
    if cursor != batch.stop:
        batch.index = batch.count
        return DEFECT_TRAILING_BYTES
    sinks.rows = row
    batch.full = row >= sinks.rows_max
    return 0


cdef inline bint has_room(
    Batch* batch,
    Sinks* sinks,
    Py_ssize_t row,
    BinarySink* keys,
    BinarySink* values,
    Fields* fields,
    int64_t header_bytes,
) noexcept nogil:
    if row == 0:
        return True
    if keys.data_size + max(fields.key_size, 0) > sinks.bytes_max:
        return False
    if values.data_size + max(fields.value_size, 0) > sinks.bytes_max:
        return False
    return not sinks.with_headers or batch.header_bytes + header_bytes <= sinks.bytes_max
