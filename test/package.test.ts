import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { blocks } from './process/readme.js'
import { createFolder } from './setup/create-folder.js'
import { eventually } from './setup/eventually.js'
import { freePort } from './setup/free-port.js'
import {
  API_KEY,
  act,
  configuredFolder,
  type Exit,
  MAY_ALL,
  ROOT,
  runProgram,
  serve,
  serveHere,
  startProgram,
  temporaryFolder,
} from './world.js'

const MAY_HOLD = [
  /^(?:README|CHANGELOG|SECURITY)\.md$/,
  /^LICENSE$/,
  /^(?:package|openapi|config\.example|config\.schema)\.json$/,
  /^openapi\.html$/,
  /^console\/(?:index\.html|assets\/[\w.-]+-[0-9a-f]+\.(?:js|css|svg|txt))$/,
  /^bin\/latchkey\.js$/,
  /^dist\/src\/[\w/.-]+\.js$/,
  /^dist\/src\/client\/[\w/]+\.cjs$/,
  /^dist\/licenses\/\w+\.txt$/,
  /^types\/(?:src\/index\.d\.ts|(?:openapi|src\/client\/\w+)\.d\.c?ts|src\/sandbox\/sandbox\.d\.ts)$/,
  /^docs\/[\w-]+\.md$/,
  /^deploy\/\w/,
  /^examples\/[\w/-]+\.(?:js|json|php|py|tsx?)$/,
]

/** Packed it has some 880 kB, 75 of it the console. Much more means that something came in that nobody needs. */
const MOST_BYTES = 930_000

const CONSUMER = `
import { createServer } from 'node:http'
import express from 'express'
import { Hono } from 'hono'
import { createReceiver, type Latchkey, startDaemon } from 'latchkey'
import { type Check, createClient } from 'latchkey/client'
import { requireFeature } from 'latchkey/express'
import { requireProduct } from 'latchkey/hono'
import { createTestClient } from 'latchkey/testing'
import { verify, type WebhookMessage } from 'latchkey/webhooks'

const latchkey: Latchkey = await startDaemon({ config: 'config.json', log: process.stderr })
const app = express()
app.use('/webhooks', createReceiver(latchkey))
createServer(createReceiver(latchkey, { endpoint: 'live' }))
// @ts-expect-error: there is no such option.
createReceiver(latchkey, { endpoints: [] })
await latchkey.close()

const client = createClient({ url: process.env.LATCHKEY_URL, apiKey: process.env.LATCHKEY_API_KEY })
const { active, until }: Check = await client.check('cus_1', { feature: 'export' })
app.get('/export', requireFeature('export', { client, customerId: (req) => req.get('x-customer') }))
const gate = requireProduct('pro_1', { client, customerId: async (context) => context.req.header('x-customer') })
new Hono().get('/', gate, (context) => context.text('in'))
await createTestClient({ products: { pro_1: { features: ['export'] } } }).check('cus_1', { productId: 'pro_1' })
const message: WebhookMessage = await verify('{}', new Headers(), ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'], { toleranceSeconds: 60 })
// @ts-expect-error: there is no such type.
message.type === 'entitlement.given'
await client.watch(({ customerId, after }) => console.log(customerId, after.active, active, until))
// @ts-expect-error: one of feature and productId is needed.
await client.check('cus_1', {})
`

/** What any entry for apps is used for, in either form of a module. */
const APP = `
import express = require('express')
import { type Check, type Client, createClient } from 'latchkey/client'
import { requireFeature } from 'latchkey/express'
import { requireProduct } from 'latchkey/hono'
import { createTestClient } from 'latchkey/testing'
import { verify, type WebhookMessage } from 'latchkey/webhooks'

const client: Client = createClient({ url: 'http://127.0.0.1:4680', apiKey: 'lk_1', maxCustomers: 0 })
const check: Promise<Check[]> = Promise.all([
  createTestClient({ products: { pro_1: {} } }).check('cus_1', { productId: 'pro_1' }),
])
express().get('/', requireFeature('export', { client, customerId: (req) => req.get('x-customer') }))
requireProduct('pro_1', { client, customerId: (context) => context.req.header('x-customer') })
verify('{}', {}, 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw').then(
  (message: WebhookMessage) => message.data.after.active,
  async ({ code }) => console.log(code, (await check)[0]?.active),
)
// @ts-expect-error: one of feature and productId is needed.
void (() => client.check('cus_1', {}))
`

const ENTRIES = {
  client: 'LatchkeyError,createClient',
  express: 'requireFeature,requireProduct',
  hono: 'requireFeature,requireProduct',
  testing: 'LatchkeyError,createTestClient',
  webhooks: 'WebhookError,verify',
}

const JEST = `
test.each(Object.entries(${JSON.stringify(ENTRIES)}))('requires %s', (name, exported) => {
  expect(Object.keys(require('latchkey/' + name)).sort().join()).toBe(exported)
})
test('verifies and asks', async () => {
  const { createHmac } = require('node:crypto')
  const { verify } = require('latchkey/webhooks')
  const body = JSON.stringify({ type: 'entitlement.granted', data: {} })
  const at = String(Math.floor(Date.now() / 1000))
  const sign = (key) => createHmac('sha256', key).update('msg_1.' + at + '.' + body).digest('base64')
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': at, 'webhook-signature': 'v1,' + sign('a secret of the length it needs') }
  const secret = 'whsec_' + Buffer.from('a secret of the length it needs').toString('base64')
  for (const one of [body, Buffer.from(body)])
    expect(await verify(one, headers, secret)).toMatchObject({ id: 'msg_1', type: 'entitlement.granted' })
  const { createClient } = require('latchkey/client')
  const client = createClient({ url: process.env.LATCHKEY_URL, apiKey: process.env.LATCHKEY_API_KEY })
  expect((await client.check('cus_1', { feature: 'export' })).active).toBe(true)
  client.close()
})
`

const STRICT = {
  compilerOptions: {
    target: 'ES2022',
    module: 'NodeNext',
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    types: ['node'],
  },
  files: ['consumer.mts'],
}

interface PackageFile {
  readonly dependencies: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, Target>>
}
type Target = string | { readonly [condition: string]: Target }

const filesOf = (target: Target): readonly string[] =>
  typeof target === 'string' ? [target] : Object.values(target).flatMap(filesOf)

const well = (exit: Exit): Exit => {
  expect(exit).toMatchObject({ code: 0 })
  return exit
}

const kept = createFolder()
afterAll(() => rmSync(kept, { recursive: true }))
let packing: Promise<string> | undefined

/** The package as `npm publish` would send it. */
function packed(): Promise<string> {
  packing ??= (async () => {
    const env = { HOME: process.env.HOME ?? '' }
    // What `prepare` builds is there, and others run it.
    const pack = ['npm', 'pack', '--silent', '--ignore-scripts', '--pack-destination', kept]
    for (const command of [['npm', 'run', '--silent', 'prepack'], pack])
      well(await runProgram(command, { folder: ROOT, env }))
    return join(kept, readdirSync(kept)[0] ?? '')
  })()
  return packing
}

/** The package as `npm install` would put it there, with what it depends on and what a consumer in TypeScript has. */
async function installInto(
  folder: string,
  tarball: string,
  beside: readonly string[] = [],
): Promise<PackageFile> {
  const modules = join(folder, 'node_modules')
  mkdirSync(join(modules, '.bin'), { recursive: true })
  well(await runProgram(['tar', '-xzf', tarball, '-C', modules], { folder }))
  renameSync(join(modules, 'package'), join(modules, 'latchkey'))
  symlinkSync('../latchkey/bin/latchkey.js', join(modules, '.bin', 'latchkey'))
  const file = JSON.parse(readFileSync(join(modules, 'latchkey', 'package.json'), 'utf8')) as PackageFile
  for (const name of [
    ...Object.keys(file.dependencies),
    '@types/node',
    '@types/express',
    'hono',
    ...beside,
  ]) {
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
  }
  return file
}

/** Generous, for a machine that has other work too. */
vi.setConfig({ testTimeout: 300_000 })

it('the package holds what it needs and no more, and works in an empty folder', async () => {
  const folder = temporaryFolder()
  const env = { HOME: process.env.HOME ?? '' }
  const tarball = await packed()
  expect(statSync(tarball).size).toBeLessThan(MOST_BYTES)
  const { stdout } = well(await runProgram(['tar', '-tzf', tarball], { folder }))
  const held = stdout
    .trim()
    .split('\n')
    .map((name) => name.replace(/^package\//, ''))
  expect(held.filter((name) => !MAY_HOLD.some((allowed) => allowed.test(name)))).toEqual([])
  const needed = [
    'README.md',
    'LICENSE',
    'docs/embedding.md',
    'openapi.html',
    'console/index.html',
    'dist/licenses/zod.txt',
    'dist/licenses/kysely.txt',
  ]
  expect(held).toEqual(expect.arrayContaining(needed))

  const { exports } = await installInto(folder, tarball)
  for (const target of filesOf(exports))
    expect([target, existsSync(join(folder, 'node_modules', 'latchkey', target))]).toEqual([target, true])

  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(STRICT))
  writeFileSync(join(folder, 'consumer.mts'), CONSUMER)
  const tsc = join(ROOT, 'node_modules', '.bin', 'tsc')
  expect(await runProgram([tsc], { folder })).toMatchObject({ code: 0, stdout: '' })

  const port = await freePort()
  const { stdout: made } = well(
    await runProgram(['npx', 'latchkey', 'init'], { folder, env: { ...env, LATCHKEY_PORT: String(port) } }),
  )
  const commands = [...made.matchAll(/^ {2}(npx latchkey .*)$/gm)].map(([, one = '']) => one.split(' '))
  expect(commands.map(([, , name]) => name)).toEqual(['serve', 'trigger'])
  const [start = [], trigger = []] = commands
  await serve(folder, { ...env, LATCHKEY_PORT: String(port) }, start)
  expect(well(await runProgram(trigger, { folder, env })).stdout).toMatch(/^payment\.authorized .* applied$/m)
  const entries = Object.keys(exports).map((name) => name.replace(/^\./, 'latchkey'))
  const load = `for (const name of ${JSON.stringify(entries.filter((name) => !name.endsWith('.json')))})
    console.log(name, Object.keys(await import(name)).join())`
  const loaded = await runProgram([process.execPath, '--input-type=module', '--eval', load], { folder })
  expect(well(loaded).stdout.split('\n')).toEqual([
    'latchkey createReceiver,startDaemon',
    ...Object.entries(ENTRIES).map(([name, exported]) => `latchkey/${name} ${exported}`),
    'latchkey/sandbox startSandbox',
    '',
  ])
})

const tool = (name: string) => join(ROOT, 'node_modules', '.bin', name)

it('two tools that know how packages go wrong find nothing in it', async () => {
  const [folder, tarball] = [temporaryFolder(), await packed()]
  // The daemon, for embedding, and the sandbox are ES modules only.
  const attw = [tool('attw'), tarball, '--exclude-entrypoints', '.', './sandbox', '--format', 'json']
  const { analysis } = JSON.parse(well(await runProgram(attw, { folder })).stdout)
  expect(Object.keys(analysis.entrypoints)).toEqual([
    ...Object.keys(ENTRIES).map((name) => `./${name}`),
    './package.json',
  ])
  expect(analysis.problems).toEqual([])
  expect(well(await runProgram([tool('publint'), tarball, '--strict'], { folder })).stdout).toContain(
    'All good!',
  )
})

describe('an app in CommonJS', () => {
  it('requires every entry, and is typed by the resolution of Node and by the older one', async () => {
    const folder = temporaryFolder()
    await installInto(folder, await packed())
    writeFileSync(join(folder, 'app.ts'), APP)
    const older = join(ROOT, 'node_modules', 'oazapfts', 'node_modules', 'typescript', 'bin', 'tsc')
    for (const [compiler, options] of [
      [tool('tsc'), { module: 'node16' }],
      [older, { module: 'commonjs', moduleResolution: 'node10', esModuleInterop: true }],
    ] as const) {
      const compilerOptions = { ...STRICT.compilerOptions, noEmit: false, outDir: 'out', ...options }
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['app.ts'] }))
      expect(await runProgram([compiler], { folder })).toMatchObject({ code: 0, stdout: '' })
      const run = await runProgram([process.execPath, 'out/app.js'], { folder })
      expect(run).toEqual({ code: 0, stdout: 'signature_missing false\n', stderr: '' })
      rmSync(join(folder, 'out'), { recursive: true })
    }
    const load = `for (const name of ${JSON.stringify(Object.keys(ENTRIES))})
      console.log(name, Object.keys(require('latchkey/' + name)).sort().join())`
    const old = ['--no-experimental-require-module', '--eval', load]
    expect(
      well(await runProgram([process.execPath, ...old], { folder }))
        .stdout.trim()
        .split('\n'),
    ).toEqual(Object.entries(ENTRIES).map(([name, exported]) => `${name} ${exported}`))
  })

  it('is tested by Jest without configuration, as docs/client.md shows', async () => {
    const folder = temporaryFolder()
    await installInto(folder, await packed())
    const { url } = await serveWithExport()
    writeFileSync(join(folder, 'package.json'), '{}')
    writeFileSync(join(folder, 'entries.test.js'), JEST)
    writeFileSync(join(folder, 'recipe.test.js'), exampleWith("require('latchkey/testing')"))
    const env = { LATCHKEY_URL: url, LATCHKEY_API_KEY: API_KEY }
    const { code, stderr } = await runProgram([tool('jest'), '--ci'], { folder, env })
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(/^Tests: +8 passed, 8 total$/m),
    })
  })

  it('is a NestJS app whose guard asks, as docs/client.md shows', async () => {
    const folder = temporaryFolder()
    const nest = ['common', 'core', 'platform-express'].map((name) => `@nestjs/${name}`)
    await installInto(folder, await packed(), [...nest, 'reflect-metadata', 'rxjs'])
    const daemon = await serveWithExport()
    const compilerOptions = {
      ...STRICT.compilerOptions,
      emitDecoratorMetadata: true,
      experimentalDecorators: true,
      skipLibCheck: true,
      noEmit: false,
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['app.ts'] }))
    writeFileSync(join(folder, 'app.ts'), exampleWith('@nestjs/common', 'ts'))
    expect(await runProgram([tool('tsc')], { folder })).toMatchObject({ code: 0, stdout: '' })
    const port = String(await freePort())
    const env = { LATCHKEY_URL: daemon.url, LATCHKEY_API_KEY: API_KEY, PORT: port, NO_COLOR: '1' }
    const app = startProgram([process.execPath, 'app.js'], { folder, env })
    await app.until(/successfully started/)
    const visit = async (customerId?: string) => {
      const headers = { Connection: 'close', ...(customerId !== undefined && { 'x-customer': customerId }) }
      const answer = await fetch(`http://localhost:${port}/export`, { headers })
      return `${answer.status} ${await answer.text()}`
    }
    // It says so before it listens.
    await eventually(async () => expect(await visit('cus_1')).toBe('200 a,b\n1,2\n'))
    expect(await visit('cus_2')).toMatch(/^402 .*Your plan does not include this/)
    expect(await visit()).toMatch(/^401 /)
    await daemon.stop()
    expect(await visit('cus_3')).toMatch(/^503 /)
  })
})

/** A daemon where cus_1 may export. */
async function serveWithExport() {
  const products = { pro_1: { features: ['export'] } }
  const daemon = await serveHere(configuredFolder({ ...MAY_ALL, products }))
  await act(daemon, 'POST', '/customers/cus_1/grants', { productId: 'pro_1', reason: 'a test' })
  return daemon
}

function exampleWith(part: string, language = 'js'): string {
  const [example] = blocks(language, ['docs/client.md']).filter(({ text }) => text.includes(part))
  return example?.text ?? ''
}
