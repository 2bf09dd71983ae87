// Package wire is the request and answer format between the Python tests and the Go clients: one JSON object on standard
// input, one on standard output, bytes as base64.
package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Record is one record; a nil key, value or header value is Kafka's null.
type Record struct {
	Offset    int64        `json:"offset"`
	Timestamp *int64       `json:"timestamp"`
	Key       []byte       `json:"key"`
	Value     []byte       `json:"value"`
	Headers   [][2]*string `json:"headers"`
}

// Batch is what to write to one partition with one codec.
type Batch struct {
	Topic     string   `json:"topic"`
	Partition int32    `json:"partition"`
	Codec     string   `json:"codec"`
	Records   []Record `json:"records"`
}

// Read is what to read from one partition.
type Read struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Start     int64  `json:"start"`
	Count     int    `json:"count"`
}

// Transaction is one transaction: values for a partition and, where a group is named, offsets with metadata by partition.
type Transaction struct {
	Partition int32            `json:"partition"`
	Values    []string         `json:"values"`
	Group     string           `json:"group"`
	Offsets   map[int32]Offset `json:"offsets"`
	End       string           `json:"end"`
}

// Offset is an offset and its metadata, a list of two in JSON.
type Offset struct {
	Offset   int64
	Metadata string
}

// UnmarshalJSON reads the list.
func (o *Offset) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&o.Offset, &o.Metadata})
}

// Request is one call of a client.
type Request struct {
	Op         string  `json:"op"`
	Bootstrap  string  `json:"bootstrap"`
	Acks       int     `json:"acks"`
	Idempotent bool    `json:"idempotent"`
	Topic      string  `json:"topic"`
	Timestamp  int64   `json:"timestamp"`
	Batches    []Batch `json:"batches"`
	Reads      []Read  `json:"reads"`

	TransactionalID string           `json:"transactional_id"`
	Transactions    []Transaction    `json:"transactions"`
	Group           string           `json:"group"`
	Partition       int32            `json:"partition"`
	Offsets         map[int32]Offset `json:"offsets"`
}

// Deadline bounds every call.
const Deadline = 25 * time.Second

// Header is a header with its value decoded.
type Header struct {
	Key   string
	Value []byte
}

// Decoded returns the headers of a record as bytes.
func (r Record) Decoded() []Header {
	decoded := make([]Header, 0, len(r.Headers))
	for _, pair := range r.Headers {
		header := Header{Key: *pair[0]}
		if pair[1] != nil {
			value, err := base64.StdEncoding.DecodeString(*pair[1])
			if err != nil {
				panic(err)
			}
			header.Value = append([]byte{}, value...)
		}
		decoded = append(decoded, header)
	}
	return decoded
}

// AddHeader appends a header in the form of the answer.
func (r *Record) AddHeader(key string, value []byte) {
	pair := [2]*string{&key, nil}
	if value != nil {
		text := base64.StdEncoding.EncodeToString(value)
		pair[1] = &text
	}
	r.Headers = append(r.Headers, pair)
}

// Serve answers the request on standard input by a handler.
func Serve(handle func(Request) (any, error)) {
	var request Request
	err := json.NewDecoder(os.Stdin).Decode(&request)
	var result any
	if err == nil {
		result, err = handle(request)
	}
	answer := map[string]any{"result": result}
	if err != nil {
		answer = map[string]any{"error": err.Error()}
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
