// Command franz produces and reads with franz-go.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"penstock.test/clients/wire"
)

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

var acks = map[int]kgo.Acks{0: kgo.NoAck(), 1: kgo.LeaderAck(), -1: kgo.AllISRAcks()}

func main() {
	wire.Serve(func(request wire.Request) (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), wire.Deadline)
		defer cancel()
		switch request.Op {
		case "write":
			return write(ctx, request)
		case "read":
			return read(ctx, request)
		case "describe_configs":
			return describeConfigs(ctx, request)
		case "offset_for_time":
			return offsetForTime(ctx, request)
		case "transact":
			return nil, transact(ctx, request)
		case "commit":
			return nil, commit(ctx, request)
		case "committed":
			return committed(ctx, request)
		}
		return nil, fmt.Errorf("unknown op %q", request.Op)
	})
}

func write(ctx context.Context, request wire.Request) (any, error) {
	written := [][]int64{}
	for _, batch := range request.Batches {
		options := []kgo.Opt{
			kgo.SeedBrokers(request.Bootstrap),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.ProducerBatchCompression(codecs[batch.Codec]),
			kgo.ProducerLinger(20 * time.Millisecond),
			kgo.RequiredAcks(acks[request.Acks]),
			kgo.AllowAutoTopicCreation(),
		}
		if !request.Idempotent {
			options = append(options, kgo.DisableIdempotentWrite())
		}
		client, err := kgo.NewClient(options...)
		if err != nil {
			return nil, err
		}
		offsets, err := writeBatch(ctx, client, batch)
		client.Close()
		if err != nil {
			return nil, err
		}
		written = append(written, offsets)
	}
	return written, nil
}

func writeBatch(ctx context.Context, client *kgo.Client, batch wire.Batch) ([]int64, error) {
	records := make([]*kgo.Record, 0, len(batch.Records))
	for _, one := range batch.Records {
		record := &kgo.Record{Topic: batch.Topic, Partition: batch.Partition, Key: one.Key, Value: one.Value}
		if one.Timestamp != nil {
			record.Timestamp = time.UnixMilli(*one.Timestamp)
		}
		for _, header := range one.Decoded() {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: header.Key, Value: header.Value})
		}
		records = append(records, record)
	}
	results := client.ProduceSync(ctx, records...)
	offsets := make([]int64, len(records))
	for _, result := range results {
		if result.Err != nil {
			return nil, result.Err
		}
	}
	for index, record := range records {
		offsets[index] = record.Offset
	}
	return offsets, nil
}

func read(ctx context.Context, request wire.Request) (any, error) {
	results := [][]wire.Record{}
	for _, wanted := range request.Reads {
		client, err := kgo.NewClient(
			kgo.SeedBrokers(request.Bootstrap),
			kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
				wanted.Topic: {wanted.Partition: kgo.NewOffset().At(wanted.Start)},
			}),
		)
		if err != nil {
			return nil, err
		}
		records, err := readPartition(ctx, client, wanted.Count)
		client.Close()
		if err != nil {
			return nil, err
		}
		results = append(results, records)
	}
	return results, nil
}

func readPartition(ctx context.Context, client *kgo.Client, count int) ([]wire.Record, error) {
	records := []wire.Record{}
	for len(records) < count {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("after %d of %d records: %w", len(records), count, err)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			timestamp := record.Timestamp.UnixMilli()
			one := wire.Record{Offset: record.Offset, Timestamp: &timestamp, Key: record.Key, Value: record.Value}
			for _, header := range record.Headers {
				one.AddHeader(header.Key, header.Value)
			}
			records = append(records, one)
		})
	}
	return records, nil
}

func describeConfigs(ctx context.Context, request wire.Request) (any, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(request.Bootstrap))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	described, err := kadm.NewClient(client).DescribeTopicConfigs(ctx, request.Topic)
	if err != nil {
		return nil, err
	}
	values := map[string]*string{}
	for _, resource := range described {
		if resource.Err != nil {
			return nil, resource.Err
		}
		for _, config := range resource.Configs {
			values[config.Key] = config.Value
		}
	}
	return values, nil
}

func offsetForTime(ctx context.Context, request wire.Request) (any, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(request.Bootstrap))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	listed, err := kadm.NewClient(client).ListOffsetsAfterMilli(ctx, request.Timestamp, request.Topic)
	if err != nil {
		return nil, err
	}
	found, _ := listed.Lookup(request.Topic, 0)
	return []int64{found.Offset, found.Timestamp}, found.Err
}

func transact(ctx context.Context, request wire.Request) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(request.Bootstrap),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.TransactionalID(request.TransactionalID),
		kgo.TransactionTimeout(20*time.Second),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, one := range request.Transactions {
		if err := runTransaction(ctx, client, request.Topic, one); err != nil {
			return err
		}
	}
	return nil
}

func runTransaction(ctx context.Context, client *kgo.Client, topic string, transaction wire.Transaction) error {
	if err := client.BeginTransaction(); err != nil {
		return err
	}
	for _, value := range transaction.Values {
		record := &kgo.Record{Topic: topic, Partition: transaction.Partition, Value: []byte(value)}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			return err
		}
	}
	if transaction.End == "commit" {
		return client.EndTransaction(ctx, kgo.TryCommit)
	}
	return client.EndTransaction(ctx, kgo.TryAbort)
}

func commit(ctx context.Context, request wire.Request) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(request.Bootstrap))
	if err != nil {
		return err
	}
	defer client.Close()
	offsets := kadm.Offsets{}
	for partition, one := range request.Offsets {
		offsets.Add(kadm.Offset{
			Topic: request.Topic, Partition: partition, At: one.Offset, LeaderEpoch: -1, Metadata: one.Metadata,
		})
	}
	return kadm.NewClient(client).CommitAllOffsets(ctx, request.Group, offsets)
}

func committed(ctx context.Context, request wire.Request) (any, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(request.Bootstrap))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	offsets, err := kadm.NewClient(client).FetchOffsets(ctx, request.Group)
	if err != nil {
		return nil, err
	}
	found, ok := offsets.Lookup(request.Topic, request.Partition)
	if !ok || found.At < 0 {
		return map[string]any{}, nil
	}
	return map[string]any{"offset": found.At, "metadata": found.Metadata}, found.Err
}
