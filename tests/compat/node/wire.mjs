// The request and answer format between the Python tests and the Node clients: one JSON object on standard input, one on
// standard output, bytes as base64.
import { readFileSync, writeSync } from 'node:fs'

export const fromBase64 = text => (text === null || text === undefined ? null : Buffer.from(text, 'base64'))
export const toBase64 = bytes => (bytes === null || bytes === undefined ? null : Buffer.from(bytes).toString('base64'))

// writeSync may take only a part of a long text when standard output is a pipe.
function print (text) {
  let rest = Buffer.from(text)
  while (rest.length > 0) {
    rest = rest.subarray(writeSync(1, rest))
  }
}

// An error and, when it stands for several, all of those.
function describe (error) {
  const own = `${error.name}: ${error.type ?? error.apiId ?? error.code ?? ''} ${error.message}`
  return [own, ...(error.errors ?? []).map(describe)].join('; ')
}

export async function serve (handlers) {
  const request = JSON.parse(readFileSync(0, 'utf8'))
  let answer
  try {
    answer = { result: (await handlers[request.op](request)) ?? null }
  } catch (error) {
    answer = { error: describe(error) }
  }
  print(JSON.stringify(answer) + '\n')
  process.exit(0)
}
