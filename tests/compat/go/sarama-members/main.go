// Command sarama-members holds members of consumer groups by sarama.
package main

import (
	"context"
	"time"

	"github.com/IBM/sarama"

	"penstock.test/clients/members"
)

var assignors = map[string]func() sarama.BalanceStrategy{
	"range":      sarama.NewBalanceStrategyRange,
	"roundrobin": sarama.NewBalanceStrategyRoundRobin,
	"sticky":     sarama.NewBalanceStrategySticky,
}

func main() {
	members.Serve(run)
}

func newConfig(join members.Join) *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.ClientID = join.Member
	config.Consumer.MaxWaitTime = members.FetchWait
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Interval = members.CommitEvery
	config.Consumer.Group.Session.Timeout = join.Session()
	config.Consumer.Group.Heartbeat.Interval = members.Heartbeat
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{assignors[join.Assignor]()}
	config.Consumer.Return.Errors = true
	if join.Instance != nil {
		config.Consumer.Group.InstanceId = *join.Instance
	}
	if join.Isolation == "read_committed" {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	return config
}

func run(join members.Join, report *members.Report, leaving <-chan struct{}) {
	group, err := sarama.NewConsumerGroup([]string{join.Bootstrap}, join.Group, newConfig(join))
	if err != nil {
		report.Failed(err)
		return
	}
	go func() {
		for err := range group.Errors() {
			report.Failed(err)
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-leaving
		cancel()
	}()
	for ctx.Err() == nil {
		// Returns whenever the group rebalances.
		if err := group.Consume(ctx, []string{join.Topic}, &handler{topic: join.Topic, report: report}); err != nil && ctx.Err() == nil {
			report.Failed(err)
			time.Sleep(100 * time.Millisecond)
		}
	}
	if err := group.Close(); err != nil {
		report.Failed(err)
	}
	report.Left()
}

type handler struct {
	topic  string
	report *members.Report
}

func (h *handler) Setup(session sarama.ConsumerGroupSession) error {
	h.report.Gained(session.Claims()[h.topic], session.GenerationID())
	return nil
}

func (h *handler) Cleanup(session sarama.ConsumerGroupSession) error {
	h.report.GaveUp(session.Claims()[h.topic])
	return nil
}

func (h *handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			h.report.Records(map[int32][]int64{message.Partition: {message.Offset}})
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			return nil
		}
	}
}
