// Clients of ksqlDB that others wrote, against the SQL server at a URL: every call they have, and what they make of the
// answers. Prints one JSON object. Usage: node ksqldb.mjs CLIENT URL
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

const STREAM = '(id INT, word VARCHAR)'
const ROWS = [{ ID: 1, WORD: 'tree' }, { ID: 2, WORD: 'wind' }, { ID: 3, WORD: 'rain' }]

const refusal = (promise) => promise.then((found) => found, (error) => String(error.message))

async function until(condition) {
  while (!condition()) await new Promise((done) => setTimeout(done, 20))
}

async function ksqldbJs(url) {
  const client = new (require('ksqldb-js'))({ ksqldbURL: url })
  const out = {}
  const created = await client.createStream('js_words', ['id INT', 'word VARCHAR'], 'js_words', 'json', 1)
  out.created = created.data[0].commandStatus.status
  out.status = (await client.inspectQueryStatus(created.data[0].commandId)).data.status
  out.acknowledged = await client.insertStream('js_words', ROWS)
  out.refusedRow = (await client.insertStream('js_words', [{ NOPE: 1 }]))[0].status
  out.pushed = []
  const id = await client.push('SELECT * FROM js_words EMIT CHANGES;', (chunk) => out.pushed.push(JSON.parse(chunk)))
  await until(() => out.pushed.length > ROWS.length)
  out.pushed.shift()
  out.terminated = (await client.terminate(id)).wasTerminated
  out.pulled = (await client.pull('SELECT * FROM js_words WHERE id > 1;')).slice(1)
  out.badStatement = await refusal(client.ksql('SHOW NOTHING;'))
  out.badQuery = await refusal(client.pull('SELECT * FROM nothing;'))
  out.settable = (await client.isValidProperty('auto.offset.reset')).data
  out.unsettable = await refusal(client.isValidProperty('ksql.service.id'))
  out.info = Object.keys((await client.inspectServerInfo()).data.KsqlServerInfo)
  out.healthy = (await client.inspectServerHealth()).data.isHealthy
  out.servers = Object.values((await client.inspectClusterStatus()).data.clusterStatus).map((each) => each.hostAlive)
  return out
}

async function ksqldbClient(url) {
  const { hostname, port } = new URL(url)
  const client = new (require('ksqldb-client'))({ host: hostname, port })
  const out = {}
  await client.connect()
  const variables = { sessionVariables: { NAME: 'client_words' } }
  const statement = `CREATE STREAM \${NAME} ${STREAM} WITH (kafka_topic='\${NAME}', value_format='json', partitions=1);`
  out.created = (await client.executeStatement(statement, variables)).data.rows[0].commandStatus.status
  out.badStatement = (await client.executeStatement('CREATE STREAM x;')).error.error_code
  out.inserted = []
  for (const row of ROWS) out.inserted.push((await client.insertInto('client_words', row)).data.rows[0])
  out.refusedRow = (await client.insertInto('client_words', { NOPE: 1 })).error.status
  const named = (items, name) => items.filter((each) => each.name === name).map((each) => each.type ?? each.replicaInfo)
  out.streams = named(await client.listStreams(), 'CLIENT_WORDS')
  out.topics = named(await client.listTopics(), 'client_words')
  out.tables = named(await client.listTables(), 'CLIENT_WORDS')
  out.queries = (await client.listQueries()).filter((each) => each.sinks.includes('CLIENT_WORDS'))
  out.fields = (await client.describeSource('client_words')).fields.map((each) => [each.name, each.schema.type])
  out.pushed = []
  let id
  const streaming = client.streamQuery('SELECT * FROM client_words EMIT CHANGES;', (answer) => {
    id = answer.metadata.queryId
    out.pushed.push(...(answer.rows ?? []))
  })
  await until(() => out.pushed.length >= ROWS.length)
  out.closed = (await client.terminatePushQuery(id)).status
  out.streamed = (await streaming).status
  out.closedAgain = (await client.terminatePushQuery(id)).error.error_code
  out.pulled = (await client.query("SELECT * FROM ${NAME} WHERE word = 'wind';", variables)).data.rows
  out.badQuery = (await client.query('SELECT * FROM nothing;')).error.error_code
  await client.disconnect()
  return out
}

async function ksqldbRxClient(url) {
  const { KsqlDBClient } = require('ksqldb-rx-client')
  const client = new KsqlDBClient(url)
  const out = {}
  await client.statement(`CREATE STREAM rx_words ${STREAM} WITH (kafka_topic='rx_words', value_format='json', partitions=1);`)
  for (const { ID, WORD } of ROWS) await client.statement(`INSERT INTO rx_words VALUES (${ID}, '${WORD}');`)
  out.streams = (await client.listStreams()).streams.filter((each) => each.name === 'RX_WORDS').map((each) => each.topic)
  out.tables = (await client.listTables())['@type']
  out.extended = (await client.listStreamsExtended()).sourceDescriptions.map((each) => each.name).includes('RX_WORDS')
  out.healthy = (await client.getHealthcheck()).isHealthy
  out.info = Object.keys((await client.getInfo()).KsqlServerInfo)
  out.badStatement = (await client.statement('SHOW NOTHING;')).error_code
  out.pushed = []
  await new Promise((complete, error) => {
    const query = { sql: 'SELECT * FROM rx_words EMIT CHANGES LIMIT 3;', properties: { 'auto.offset.reset': 'earliest' } }
    client.queryStream(query).subscribe({ next: (row) => out.pushed.push(row), error, complete })
  })
  client.close()
  return out
}

const clients = { 'ksqldb-js': ksqldbJs, 'ksqldb-client': ksqldbClient, 'ksqldb-rx-client': ksqldbRxClient }
const [name, url] = process.argv.slice(2)
console.log(JSON.stringify(await clients[name](url)))
process.exit(0)
