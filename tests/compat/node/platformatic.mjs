// Produces with @platformatic/kafka, and reads by its consumer's own fetch call, which needs no group.
import { Consumer, Producer, Admin } from '@platformatic/kafka'
import zlib from 'node:zlib'
import { fromBase64, serve, toBase64 } from './wire.mjs'

const options = request => ({ clientId: 'compat', bootstrapBrokers: [request.bootstrap], retries: 2, timeout: 10000 })

async function write (request) {
  const producer = new Producer({ ...options(request), autocreateTopics: true })
  const written = []
  for (const batch of request.batches) {
    const sent = await producer.send({
      acks: request.acks,
      idempotent: request.idempotent,
      compression: batch.codec,
      messages: batch.records.map(record => ({
        topic: batch.topic,
        partition: batch.partition,
        key: fromBase64(record.key) ?? undefined,
        value: fromBase64(record.value) ?? undefined,
        headers: new Map(record.headers.map(([name, value]) => [Buffer.from(name), fromBase64(value)])),
        timestamp: record.timestamp === null ? undefined : BigInt(record.timestamp)
      }))
    })
    const base = Number(sent.offsets?.[0]?.offset ?? -1)
    written.push(batch.records.map((_, index) => base + index))
  }
  await producer.close()
  return written
}

function recordsOf (batch) {
  return batch.records.map(record => ({
    offset: Number(batch.firstOffset) + record.offsetDelta,
    timestamp: Number(batch.firstTimestamp + record.timestampDelta),
    key: toBase64(record.key),
    value: toBase64(record.value),
    headers: record.headers.map(([name, value]) => [name.toString(), toBase64(value)])
  }))
}

async function read (request) {
  const consumer = new Consumer({ ...options(request), groupId: 'unused' })
  const results = []
  for (const wanted of request.reads) {
    const metadata = await consumer.metadata({ topics: [wanted.topic] })
    const topic = metadata.topics.get(wanted.topic)
    const records = []
    let next = wanted.start
    const deadline = Date.now() + 20000
    while (records.length < wanted.count && Date.now() < deadline) {
      const answer = await consumer.fetch({
        node: topic.partitions[wanted.partition].leader,
        maxWaitTime: 500,
        minBytes: 1,
        maxBytes: 50_000_000,
        isolationLevel: 0,
        topics: [{
          topicId: topic.id,
          partitions: [{
            partition: wanted.partition,
            currentLeaderEpoch: -1,
            fetchOffset: BigInt(next),
            lastFetchedEpoch: -1,
            partitionMaxBytes: 50_000_000
          }]
        }]
      })
      const batches = answer.responses[0]?.partitions[0]?.records ?? []
      records.push(...batches.flatMap(recordsOf).filter(record => record.offset >= next))
      next = records.length > 0 ? records.at(-1).offset + 1 : next
    }
    results.push(records)
  }
  await consumer.close(true)
  return results
}

async function describeConfigs (request) {
  const admin = new Admin(options(request))
  const described = await admin.describeConfigs({
    resources: [{ resourceType: 2, resourceName: request.topic, configurationKeys: null }],
    includeSynonyms: true,
    includeDocumentation: false
  })
  await admin.close()
  return Object.fromEntries(described[0].configs.map(one => [one.name, one.value]))
}

// zstd is in Node's own library only from 22.15 on.
const codecs = async () => ['none', 'gzip', 'snappy', 'lz4', ...(zlib.zstdCompressSync ? ['zstd'] : [])]

await serve({ write, read, codecs, describe_configs: describeConfigs })
