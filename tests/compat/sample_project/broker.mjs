// A test in Node: start a broker, use it with kafkajs, end it. docs/testing.md shows the first part.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import kafkajs from 'kafkajs'

export async function startKafka () {
  const broker = spawn('penstock', ['serve', '--ephemeral', '--until-stdin-closes'], { stdio: ['pipe', 'pipe', 'ignore'] })
  const [line] = await once(createInterface({ input: broker.stdout }), 'line')
  const stop = async () => {
    broker.stdin.end()
    const [code] = await once(broker, 'exit')
    return code
  }
  return { bootstrapServers: JSON.parse(line).bootstrap_servers, stop }
}

const { bootstrapServers, stop } = await startKafka()
const kafka = new kafkajs.Kafka({ brokers: [bootstrapServers], logLevel: kafkajs.logLevel.NOTHING })

const producer = kafka.producer()
await producer.connect()
await producer.send({ topic: 'greetings', messages: [{ value: 'hello from node' }] })
await producer.disconnect()

const consumer = kafka.consumer({ groupId: 'readers' })
await consumer.connect()
await consumer.subscribe({ topic: 'greetings', fromBeginning: true })
const read = await new Promise(resolve => {
  consumer.run({ eachMessage: async ({ message }) => resolve([message.value.toString()]) })
})
await consumer.disconnect()
console.log(JSON.stringify({ read, exit: await stop() }))
