// Members of consumer groups by kafkajs. Commands and events: members/wire.py. It tells no generation, and knows no
// assignor but its own round-robin one.
import { createInterface } from 'node:readline'
import kafkajs from 'kafkajs'

const { Kafka, PartitionAssigners, logLevel } = kafkajs
const members = new Map()

function print (event, member, fields = {}) {
  process.stdout.write(JSON.stringify({ event, member, time: Date.now(), ...fields }) + '\n')
}

async function join (command) {
  const { member, topic } = command
  const kafka = new Kafka({
    clientId: member,
    brokers: [command.bootstrap],
    logLevel: logLevel.NOTHING,
    retry: { retries: 30, initialRetryTime: 100, maxRetryTime: 1000 }
  })
  const consumer = kafka.consumer({
    groupId: command.group,
    sessionTimeout: command.session_ms,
    rebalanceTimeout: 20000,
    heartbeatInterval: 300,
    maxWaitTimeInMs: 200,
    readUncommitted: command.isolation === 'read_uncommitted',
    partitionAssigners: [PartitionAssigners.roundRobin]
  })
  members.set(member, consumer)
  const owns = partitions => print('owned', member, { partitions, generation: -1 })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => owns(payload.memberAssignment[topic] ?? []))
  consumer.on(consumer.events.REBALANCING, () => owns([]))
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    owns([])
    if (!payload.restart) print('failed', member, { error: String(payload.error) })
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    autoCommitInterval: 300,
    eachBatch: async ({ batch }) => {
      print('records', member, { offsets: { [batch.partition]: batch.messages.map(one => Number(one.offset)) } })
    }
  })
}

async function leave ({ member }) {
  const consumer = members.get(member)
  members.delete(member)
  await consumer.disconnect()
  print('left', member)
}

const handlers = { join, leave }
createInterface({ input: process.stdin })
  .on('line', line => {
    const command = JSON.parse(line)
    handlers[command.op](command).catch(error => print('failed', command.member, { error: String(error) }))
  })
  .on('close', () => process.exit(0))
