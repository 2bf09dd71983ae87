// Command sarama produces and reads with sarama.
package main

import (
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"penstock.test/clients/wire"
)

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

func main() {
	wire.Serve(func(request wire.Request) (any, error) {
		switch request.Op {
		case "write":
			return write(request)
		case "read":
			return read(request)
		case "describe_configs":
			return describeConfigs(request)
		case "offset_for_time":
			return offsetForTime(request)
		case "transact":
			return nil, transact(request)
		case "commit":
			return nil, commit(request)
		case "committed":
			return committed(request)
		}
		return nil, fmt.Errorf("unknown op %q", request.Op)
	})
}

func newConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.MaxMessageBytes = 20_000_000
	config.Consumer.MaxWaitTime = 50 * time.Millisecond
	return config
}

func write(request wire.Request) (any, error) {
	written := [][]int64{}
	for _, batch := range request.Batches {
		config := newConfig()
		config.Producer.Compression = codecs[batch.Codec]
		config.Producer.RequiredAcks = sarama.RequiredAcks(request.Acks)
		config.Producer.Flush.Frequency = 20 * time.Millisecond
		if request.Idempotent {
			config.Producer.Idempotent = true
			config.Net.MaxOpenRequests = 1
		}
		producer, err := sarama.NewSyncProducer([]string{request.Bootstrap}, config)
		if err != nil {
			return nil, err
		}
		offsets, err := writeBatch(producer, batch)
		if err == nil {
			err = producer.Close()
		}
		if err != nil {
			return nil, err
		}
		written = append(written, offsets)
	}
	return written, nil
}

func encoder(content []byte) sarama.Encoder {
	if content == nil {
		return nil
	}
	return sarama.ByteEncoder(content)
}

func writeBatch(producer sarama.SyncProducer, batch wire.Batch) ([]int64, error) {
	messages := make([]*sarama.ProducerMessage, 0, len(batch.Records))
	for _, one := range batch.Records {
		message := &sarama.ProducerMessage{
			Topic: batch.Topic, Partition: batch.Partition, Key: encoder(one.Key), Value: encoder(one.Value),
		}
		if one.Timestamp != nil {
			message.Timestamp = time.UnixMilli(*one.Timestamp)
		}
		for _, header := range one.Decoded() {
			message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(header.Key), Value: header.Value})
		}
		messages = append(messages, message)
	}
	if err := producer.SendMessages(messages); err != nil {
		if several, ok := err.(sarama.ProducerErrors); ok {
			return nil, several[0].Err
		}
		return nil, err
	}
	offsets := make([]int64, len(messages))
	for index, message := range messages {
		offsets[index] = message.Offset
	}
	return offsets, nil
}

func read(request wire.Request) (any, error) {
	consumer, err := sarama.NewConsumer([]string{request.Bootstrap}, newConfig())
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	results := [][]wire.Record{}
	for _, wanted := range request.Reads {
		partition, err := consumer.ConsumePartition(wanted.Topic, wanted.Partition, wanted.Start)
		if err != nil {
			return nil, err
		}
		records, err := readPartition(partition, wanted.Count)
		partition.AsyncClose()
		if err != nil {
			return nil, err
		}
		results = append(results, records)
	}
	return results, nil
}

func readPartition(partition sarama.PartitionConsumer, count int) ([]wire.Record, error) {
	records := []wire.Record{}
	deadline := time.After(wire.Deadline)
	for len(records) < count {
		select {
		case message, ok := <-partition.Messages():
			if !ok {
				return nil, fmt.Errorf("closed after %d of %d records", len(records), count)
			}
			timestamp := message.Timestamp.UnixMilli()
			one := wire.Record{Offset: message.Offset, Timestamp: &timestamp, Key: message.Key, Value: message.Value}
			for _, header := range message.Headers {
				one.AddHeader(string(header.Key), header.Value)
			}
			records = append(records, one)
		case <-deadline:
			return nil, fmt.Errorf("timed out after %d of %d records", len(records), count)
		}
	}
	return records, nil
}

func describeConfigs(request wire.Request) (any, error) {
	admin, err := sarama.NewClusterAdmin([]string{request.Bootstrap}, newConfig())
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	entries, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: request.Topic})
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, entry := range entries {
		values[entry.Name] = entry.Value
	}
	return values, nil
}

func offsetForTime(request wire.Request) (any, error) {
	client, err := sarama.NewClient([]string{request.Bootstrap}, newConfig())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	offset, err := client.GetOffset(request.Topic, 0, request.Timestamp)
	return []int64{offset, -1}, err
}

func transact(request wire.Request) error {
	config := newConfig()
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Transaction.ID = request.TransactionalID
	config.Producer.Transaction.Timeout = 20 * time.Second
	config.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer([]string{request.Bootstrap}, config)
	if err != nil {
		return err
	}
	defer producer.Close()
	for _, one := range request.Transactions {
		if err := runTransaction(producer, request.Topic, one); err != nil {
			return err
		}
	}
	return nil
}

func runTransaction(producer sarama.SyncProducer, topic string, transaction wire.Transaction) error {
	if err := producer.BeginTxn(); err != nil {
		return err
	}
	for _, value := range transaction.Values {
		message := &sarama.ProducerMessage{
			Topic: topic, Partition: transaction.Partition, Value: sarama.StringEncoder(value),
		}
		if _, _, err := producer.SendMessage(message); err != nil {
			return err
		}
	}
	if len(transaction.Offsets) > 0 {
		offsets := []*sarama.PartitionOffsetMetadata{}
		for partition, one := range transaction.Offsets {
			metadata := one.Metadata
			offsets = append(offsets, &sarama.PartitionOffsetMetadata{
				Partition: partition, Offset: one.Offset, LeaderEpoch: -1, Metadata: &metadata,
			})
		}
		byTopic := map[string][]*sarama.PartitionOffsetMetadata{topic: offsets}
		if err := producer.AddOffsetsToTxn(byTopic, transaction.Group); err != nil {
			return err
		}
	}
	if transaction.End == "commit" {
		return producer.CommitTxn()
	}
	return producer.AbortTxn()
}

func commit(request wire.Request) error {
	config := newConfig()
	config.Consumer.Offsets.AutoCommit.Enable = false
	client, err := sarama.NewClient([]string{request.Bootstrap}, config)
	if err != nil {
		return err
	}
	defer client.Close()
	manager, err := sarama.NewOffsetManagerFromClient(request.Group, client)
	if err != nil {
		return err
	}
	defer manager.Close()
	for partition, one := range request.Offsets {
		managed, err := manager.ManagePartition(request.Topic, partition)
		if err != nil {
			return err
		}
		managed.MarkOffset(one.Offset, one.Metadata)
		defer managed.AsyncClose()
	}
	manager.Commit()
	return nil
}

func committed(request wire.Request) (any, error) {
	admin, err := sarama.NewClusterAdmin([]string{request.Bootstrap}, newConfig())
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	partitions := map[string][]int32{request.Topic: {request.Partition}}
	answer, err := admin.ListConsumerGroupOffsets(request.Group, partitions)
	if err != nil {
		return nil, err
	}
	found := answer.GetBlock(request.Topic, request.Partition)
	if found == nil || found.Offset < 0 {
		return map[string]any{}, nil
	}
	return map[string]any{"offset": found.Offset, "metadata": found.Metadata}, nil
}
