// Produces and administers with kafkajs. Its codecs beyond gzip are plug-ins, as its documentation asks for.
import kafkajs from 'kafkajs'
import snappy from 'kafkajs-snappy'
import * as wasm from '@platformatic/wasm-utils'
import zstd from '@bokuweb/zstd-wasm'
import { fromBase64, serve } from './wire.mjs'

const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = kafkajs

await zstd.init()
CompressionCodecs[CompressionTypes.Snappy] = snappy
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => wasm.lz4Compress(encoder.buffer),
  decompress: async buffer => wasm.lz4Decompress(buffer)
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from(zstd.compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(zstd.decompress(buffer))
})

const codecs = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD
}

const connect = request =>
  new Kafka({
    clientId: 'compat',
    brokers: [request.bootstrap],
    logLevel: logLevel.NOTHING,
    retry: { retries: 2, initialRetryTime: 100 }
  })

// kafkajs keeps headers in an object: several values of one name are an array.
function toHeaders (pairs) {
  const headers = {}
  for (const [name, value] of pairs) {
    const bytes = fromBase64(value)
    headers[name] = name in headers ? [].concat(headers[name], bytes) : bytes
  }
  return headers
}

async function write (request) {
  const producer = connect(request).producer({
    idempotent: request.idempotent,
    maxInFlightRequests: 1,
    allowAutoTopicCreation: true
  })
  await producer.connect()
  const written = []
  for (const batch of request.batches) {
    const messages = batch.records.map(record => ({
      partition: batch.partition,
      key: fromBase64(record.key),
      value: fromBase64(record.value),
      headers: toHeaders(record.headers),
      timestamp: record.timestamp === null ? undefined : String(record.timestamp)
    }))
    const sent = await producer.send({
      topic: batch.topic,
      acks: request.acks,
      compression: codecs[batch.codec],
      messages
    })
    written.push(messages.map((_, index) => Number(sent[0]?.baseOffset ?? -1) + index))
  }
  await producer.disconnect()
  return written
}

// Transactions one after the other, each with values for a partition and committed or aborted at its end.
async function transact (request) {
  const producer = connect(request).producer({
    idempotent: true,
    maxInFlightRequests: 1,
    transactionalId: request.transactional_id,
    transactionTimeout: 20000
  })
  await producer.connect()
  for (const one of request.transactions) {
    const transaction = await producer.transaction()
    const messages = one.values.map(value => ({ partition: one.partition, value }))
    await transaction.send({ topic: request.topic, messages })
    if (one.group) {
      const partitions = Object.entries(one.offsets).map(([partition, [offset]]) => ({ partition: Number(partition), offset }))
      await transaction.sendOffsets({ consumerGroupId: one.group, topics: [{ topic: request.topic, partitions }] })
    }
    await (one.end === 'commit' ? transaction.commit() : transaction.abort())
  }
  await producer.disconnect()
}

// Its calls take no metadata outside of a running group.
const commit = request =>
  withAdmin(request, admin =>
    admin.setOffsets({
      groupId: request.group,
      topic: request.topic,
      partitions: Object.entries(request.offsets).map(([partition, [offset]]) =>
        ({ partition: Number(partition), offset: String(offset) }))
    }))

const committed = request =>
  withAdmin(request, async admin => {
    const [{ partitions }] = await admin.fetchOffsets({ groupId: request.group, topics: [request.topic] })
    const found = partitions.find(one => one.partition === request.partition)
    return found === undefined || found.offset === '-1' ? {} : { offset: Number(found.offset), metadata: found.metadata }
  })

async function withAdmin (request, use) {
  const admin = connect(request).admin()
  await admin.connect()
  const result = await use(admin)
  await admin.disconnect()
  return result
}

const describeConfigs = request =>
  withAdmin(request, async admin => {
    const described = await admin.describeConfigs({
      includeSynonyms: true,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: request.topic }]
    })
    return Object.fromEntries(described.resources[0].configEntries.map(one => [one.configName, one.configValue]))
  })

const offsetForTime = request =>
  withAdmin(request, async admin => {
    const [found] = await admin.fetchTopicOffsetsByTimestamp(request.topic, request.timestamp)
    return [Number(found.offset), -1]
  })

const createTopic = request =>
  withAdmin(request, admin =>
    admin.createTopics({ topics: [{ topic: request.topic, numPartitions: request.partitions }], waitForLeaders: true }))

const topicOffsets = request =>
  withAdmin(request, async admin =>
    (await admin.fetchTopicOffsets(request.topic)).map(one => [one.partition, Number(one.low), Number(one.high)]))

const deleteTopic = request => withAdmin(request, admin => admin.deleteTopics({ topics: [request.topic] }))

const describeCluster = request =>
  withAdmin(request, async admin => {
    const cluster = await admin.describeCluster()
    return {
      cluster_id: cluster.clusterId,
      controller: cluster.controller,
      nodes: cluster.brokers.map(one => [one.nodeId, one.host, one.port])
    }
  })

await serve({
  write,
  transact,
  commit,
  committed,
  describe_configs: describeConfigs,
  describe_cluster: describeCluster,
  offset_for_time: offsetForTime,
  create_topic: createTopic,
  delete_topic: deleteTopic,
  topic_offsets: topicOffsets
})
