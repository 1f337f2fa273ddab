import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { join } from 'node:path'
import express, { type RequestHandler } from 'express'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createReceiver, type Latchkey, startDaemon } from '../src/index.js'
import { blocks } from './process/readme.js'
import { freePort } from './setup/free-port.js'
import { portOf } from './setup/port-of.js'
import { customerStory, NOT_STORED, type SendOptions, send, sentEvent } from './stories.js'
import {
  CONFIG,
  configuredFolder,
  databaseIn,
  entitlementsOf,
  latchkey as program,
  ROOT,
  rewriteConfig,
  runProgram,
  startProgram,
  temporaryFolder,
} from './world.js'

const ANY_PORT = { ...CONFIG, server: { port: 0 }, log: { level: 'warn' } }

/** A daemon in this process, and what it logs. */
async function started(config: string | object = rewriteConfig(temporaryFolder(), ANY_PORT)) {
  const lines: string[] = []
  const latchkey = await startDaemon({ config, log: { write: (line) => void lines.push(line) } })
  onTestFinished(latchkey.close)
  return { latchkey, logged: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>) }
}

/** Starts and closes a daemon three times, and says of each whether the place that it logs to is held no more. */
const LETTING_GO = `
  import { startDaemon } from './dist/src/index.js'
  async function live() {
    const log = { write() {} }
    const { close } = await startDaemon({ config: 'config.json', log })
    await close()
    return new WeakRef(log)
  }
  const lives = [await live(), await live(), await live()]
  // A reference is held until the turn in which it was made, or read, is over.
  for (let turns = 0; turns < 100 && lives.some((one) => one.deref()); turns += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    gc()
  }
  console.log(...lives.map((one) => one.deref() === undefined))
`

const served = async (handle: RequestListener) => `http://127.0.0.1:${await portOf(createServer(handle))}`

const { customerId, events, outcome } = customerStory(1)

describe('the receiver of an embedded daemon', () => {
  it.each<readonly [string, (latchkey: Latchkey) => RequestListener, SendOptions]>([
    ['Express', (latchkey) => express().use('/webhooks', createReceiver(latchkey)), {}],
    [
      'Express, for one endpoint',
      (latchkey) => express().use('/webhooks/paid', createReceiver(latchkey, { endpoint: 'live' })),
      { endpoint: 'paid' },
    ],
    ['node:http', (latchkey) => createReceiver(latchkey), {}],
    ['node:http, with a slash at the end', (latchkey) => createReceiver(latchkey), { endpoint: 'live/' }],
    [
      'behind what pauses each request',
      (latchkey) =>
        express()
          .use((req, _res, next) => {
            req.pause()
            setImmediate(next)
          })
          .use('/webhooks', createReceiver(latchkey)),
      {},
    ],
  ])('takes deliveries in by the server of the app: %s', async (_, appWith, options) => {
    const { latchkey, logged } = await started()
    const url = await served(appWith(latchkey))
    for (const event of events)
      expect(await send(url, event, options)).toMatchObject({ status: 200, disposition: 'applied' })
    expect(await entitlementsOf(latchkey, customerId)).toEqual([outcome])
    expect(logged()).toEqual([])
  })

  it('refuses as the daemon does', async () => {
    const { latchkey } = await started()
    const app = await served(express().use('/webhooks', createReceiver(latchkey)))
    const [event = sentEvent('', '', 0, {})] = events
    const large = { ...event, body: ' '.repeat(1024 * 1024 + 1) }
    for (const [sent, options, status, code] of [
      [event, { secret: 'whsec_of_somebody_else' }, 401, 'signature_invalid'],
      [event, { at: 0 }, 401, 'timestamp_out_of_tolerance'],
      [event, { endpoint: 'nowhere' }, 404, 'endpoint_not_found'],
      [large, {}, 413, 'body_too_large'],
    ] as const) {
      const answer = await send(app, sent, options)
      expect(answer).toMatchObject({ status, code })
      const requestId = expect.any(String)
      expect({ ...answer, requestId }).toEqual(await send(latchkey.url, sent, options))
    }
  })

  it.each<readonly [string, RequestHandler]>([
    ['has read', express.json()],
    ['turns into text', (req, _res, next) => next(void req.setEncoding('utf8'))],
  ])('refuses what a body parser %s, says what to do, and logs it once', async (_, parser) => {
    const { latchkey, logged } = await started()
    const url = await served(express().use(parser).use('/webhooks', createReceiver(latchkey)))
    const detail = expect.stringMatching(/mount the receiver before express\.json\(\)/)
    for (const event of events)
      expect(await send(url, event)).toMatchObject({ status: 500, code: 'body_already_read', detail })
    expect(logged()).toMatchObject([
      { level: 'error', code: 'body_already_read', endpoint: 'live', msg: detail },
    ])
    expect(await entitlementsOf(latchkey, customerId)).toEqual([])
  })
})

describe('an embedded daemon', () => {
  it('takes its config as an object, leaves signals to the app, and closes for another to start', async () => {
    const config = { ...ANY_PORT, database: { url: `sqlite:${databaseIn(temporaryFolder())}` } }
    const handled = () =>
      (['SIGHUP', 'SIGINT', 'SIGTERM'] as const).map((name) => process.listenerCount(name))
    const before = handled()
    const { latchkey } = await started(config)
    expect(handled()).toEqual(before)
    const url = await served(createReceiver(latchkey))
    const [first, second = sentEvent('', '', 0, {})] = events
    expect(await send(url, first ?? second)).toMatchObject({ status: 200 })

    await expect(startDaemon({ config })).rejects.toMatchObject({
      code: 'store_in_use',
      message: expect.stringMatching(/^Another daemon or command is using .*latchkey\.db\./),
    })
    await Promise.all([latchkey.close(), latchkey.close()])
    expect(await send(url, second)).toMatchObject(NOT_STORED)
    await expect(fetch(latchkey.url)).rejects.toThrow()

    const again = (await started(config)).latchkey
    expect(await send(await served(createReceiver(again)), second)).toMatchObject({ status: 200 })
    expect(await entitlementsOf(again, customerId)).toHaveLength(1)
  })

  it('is let go of once it is closed', async () => {
    const folder = configuredFolder(ANY_PORT)
    symlinkSync(join(ROOT, 'dist'), join(folder, 'dist'))
    writeFileSync(join(folder, 'app.mjs'), LETTING_GO)
    const { stdout, stderr } = await runProgram([process.execPath, '--expose-gc', 'app.mjs'], { folder })
    expect({ stdout, stderr }).toEqual({ stdout: 'true true true\n', stderr: '' })
  })

  it('refuses a wrong config with every problem, and a missing file', async () => {
    const wrong = { ...CONFIG, server: { port: -1 }, endpoint: {} }
    await expect(startDaemon({ config: wrong })).rejects.toMatchObject({
      code: 'config_invalid',
      message: 'the config object has 2 problems',
      issues: [{ path: 'server.port' }, { path: 'endpoint' }],
    })
    const path = join(temporaryFolder(), 'none.json')
    await expect(startDaemon({ config: path })).rejects.toMatchObject({ code: 'config_missing' })
  })

  it('runs in the app of the docs, where the commands reach it', async () => {
    const folder = configuredFolder({ ...CONFIG, server: { port: await freePort() } })
    mkdirSync(join(folder, 'node_modules'))
    symlinkSync(ROOT, join(folder, 'node_modules', 'latchkey'))
    symlinkSync(join(ROOT, 'node_modules', 'express'), join(folder, 'node_modules', 'express'))
    const [shown] = blocks('js', ['docs/embedding.md'])
    const port = await freePort()
    writeFileSync(
      join(folder, 'app.mjs'),
      shown?.text.replace('listen(3000)', `listen(${port}, () => console.log('up'))`) ?? '',
    )
    const app = startProgram([process.execPath, 'app.mjs'], { folder })
    await app.until(/^up$/m)
    const [event = sentEvent('', '', 0, {})] = events
    expect(await send(`http://127.0.0.1:${port}`, event)).toMatchObject({ status: 200 })
    const reloaded = await runProgram(program('reload'), { folder })
    expect(reloaded).toMatchObject({ code: 0, stdout: 'nothing has changed\n' })
    expect(await runProgram(program('stop'), { folder })).toMatchObject({ code: 0 })
    expect(await send(`http://127.0.0.1:${port}`, event)).toMatchObject(NOT_STORED)
    app.signal('SIGTERM')
    expect(await app.exit).toMatchObject({ code: 0, stderr: '' })
  })
})
