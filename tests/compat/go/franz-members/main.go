// Command franz-members holds members of consumer groups by franz-go.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"penstock.test/clients/members"
)

var assignors = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"sticky":             kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

func main() {
	members.Serve(run)
}

func options(join members.Join, report *members.Report) []kgo.Opt {
	assigned := func(_ context.Context, client *kgo.Client, partitions map[string][]int32) {
		_, generation := client.GroupMetadata()
		report.Gained(partitions[join.Topic], generation)
	}
	gaveUp := func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		report.GaveUp(partitions[join.Topic])
	}
	chosen := []kgo.Opt{
		kgo.SeedBrokers(join.Bootstrap),
		kgo.ConsumerGroup(join.Group),
		kgo.ConsumeTopics(join.Topic),
		kgo.Balancers(assignors[join.Assignor]),
		kgo.SessionTimeout(join.Session()),
		kgo.HeartbeatInterval(members.Heartbeat),
		kgo.AutoCommitInterval(members.CommitEvery),
		kgo.FetchMaxWait(members.FetchWait),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(assigned),
		kgo.OnPartitionsRevoked(gaveUp),
		kgo.OnPartitionsLost(gaveUp),
	}
	if join.Instance != nil {
		chosen = append(chosen, kgo.InstanceID(*join.Instance))
	}
	if join.Isolation == "read_committed" {
		chosen = append(chosen, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	return chosen
}

func run(join members.Join, report *members.Report, leaving <-chan struct{}) {
	client, err := kgo.NewClient(options(join, report)...)
	if err != nil {
		report.Failed(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-leaving
		cancel()
	}()
	for ctx.Err() == nil {
		poll(ctx, client, report)
	}
	// What was printed is committed, then the group is left (a static member stays in it).
	ending, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	if err := client.CommitUncommittedOffsets(ending); err != nil {
		report.Failed(err)
	}
	client.Close()
	report.Left()
}

func poll(ctx context.Context, client *kgo.Client, report *members.Report) {
	fetches := client.PollFetches(ctx)
	fetches.EachError(func(_ string, _ int32, err error) {
		if !errors.Is(err, context.Canceled) {
			report.Failed(err)
		}
	})
	offsets := map[int32][]int64{}
	fetches.EachRecord(func(record *kgo.Record) {
		offsets[record.Partition] = append(offsets[record.Partition], record.Offset)
	})
	report.Records(offsets)
}
