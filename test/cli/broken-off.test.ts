import { mkdirSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, ListenOptions } from 'node:net'
import { dirname } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { socketFileOf } from '../../src/handlers/api-key.js'
import { writeConfig } from '../config/config-file.js'
import { temporaryFile } from '../store/temporary-store.js'
import { unusedPort } from './receiver.js'
import { cli } from './run-cli.js'

const ERASE = ['erase', 'cus_1', '--yes', '--json']

/** How a daemon may be killed while it does what it was asked. */
const ENDS: readonly [string, RequestListener][] = [
  ['before it answers', (req) => req.on('end', () => req.socket.destroy()).resume()],
  [
    'in the midst of its answer',
    (req, res) => {
      req.resume()
      res.writeHead(200, { 'content-length': 100 })
      res.write('{', () => req.socket.destroy())
    },
  ],
]

async function listen(server: Server, where: ListenOptions): Promise<void> {
  await new Promise<void>((resolve) => server.listen(where, resolve))
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())))
}

/** What the command says in JSON of how it failed. */
async function failureOf(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { exitCode, out, err } = await cli(args, env)
  expect({ exitCode, out }).toEqual({ exitCode: 1, out: '' })
  return (JSON.parse(err) as { error: { code: string; message: string } }).error
}

describe('a command whose daemon ends', () => {
  const MAY_BE_DONE = {
    code: 'daemon_failed',
    message: expect.stringMatching(
      /^the daemon did not answer: .+ may have been done all the same; run it again/,
    ),
  }

  it.each(ENDS)('%s says that it may have been done, and does not do it itself', async (_when, end) => {
    const file = temporaryFile()
    mkdirSync(dirname(file))
    await listen(createServer(end), { path: socketFileOf(file) })
    const config = writeConfig({ database: { url: `sqlite:${file}` } })
    expect(await failureOf([...ERASE, '--config', config])).toMatchObject(MAY_BE_DONE)
  })

  it.each(ENDS)('%s at an address says so too', async (_when, end) => {
    const server = createServer(end)
    await listen(server, { port: 0, host: '127.0.0.1' })
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    expect(await failureOf([...ERASE, '--url', url], { LATCHKEY_API_KEY: 'lk_1' })).toMatchObject(MAY_BE_DONE)
  })
})

it('a command that nobody took says only that', async () => {
  const url = `http://127.0.0.1:${await unusedPort()}`
  expect(await failureOf([...ERASE, '--url', url], { LATCHKEY_API_KEY: 'lk_1' })).toEqual({
    code: 'daemon_unreachable',
    message: `no daemon answers at ${url}`,
    issues: [],
  })
})
