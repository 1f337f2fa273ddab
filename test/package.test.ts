import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { freePort } from './setup/free-port.js'
import { type Exit, ROOT, runProgram, serve, temporaryFolder } from './world.js'

const MAY_HOLD = [
  /^(?:README|CHANGELOG|SECURITY)\.md$/,
  /^LICENSE$/,
  /^(?:package|openapi|config\.example|config\.schema)\.json$/,
  /^bin\/latchkey\.js$/,
  /^dist\/src\/[\w/.-]+\.js$/,
  /^dist\/licenses\/\w+\.txt$/,
  /^types\/(?:openapi|src\/index|src\/client\/\w+|src\/sandbox\/sandbox)\.d\.ts$/,
  /^docs\/[\w-]+\.md$/,
  /^deploy\/\w/,
  /^examples\/[\w/-]+\.(?:js|json|php|py|tsx?)$/,
]

/** Packed it has some 550 kB. Much more means that something came in that nobody needs. */
const MOST_BYTES = 700_000

const CONSUMER = `
import { createServer } from 'node:http'
import express from 'express'
import { Hono } from 'hono'
import { createReceiver, type Latchkey, startDaemon } from 'latchkey'
import { type Check, createClient } from 'latchkey/client'
import { requireFeature } from 'latchkey/express'
import { requireProduct } from 'latchkey/hono'

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
await client.watch(({ customerId, after }) => console.log(customerId, after.active, active, until))
// @ts-expect-error: one of feature and productId is needed.
await client.check('cus_1', {})
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
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>
}

const well = (exit: Exit): Exit => {
  expect(exit).toMatchObject({ code: 0 })
  return exit
}

/** The package as `npm install` would put it there, with what it depends on and what a consumer in TypeScript has. */
async function installInto(folder: string, tarball: string): Promise<PackageFile> {
  const modules = join(folder, 'node_modules')
  mkdirSync(join(modules, '.bin'), { recursive: true })
  well(await runProgram(['tar', '-xzf', tarball, '-C', modules], { folder }))
  renameSync(join(modules, 'package'), join(modules, 'latchkey'))
  symlinkSync('../latchkey/bin/latchkey.js', join(modules, '.bin', 'latchkey'))
  const file = JSON.parse(readFileSync(join(modules, 'latchkey', 'package.json'), 'utf8')) as PackageFile
  for (const name of [...Object.keys(file.dependencies), '@types/node', '@types/express', 'hono']) {
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
  }
  return file
}

it('the package holds what it needs and no more, and works in an empty folder', async () => {
  const folder = temporaryFolder()
  const env = { HOME: process.env.HOME ?? '' }
  // What `prepare` builds is there, and others run it.
  const pack = ['npm', 'pack', '--silent', '--ignore-scripts', '--pack-destination', folder]
  for (const command of [['npm', 'run', '--silent', 'prepack'], pack])
    well(await runProgram(command, { folder: ROOT, env }))
  const tarball = join(folder, readdirSync(folder)[0] ?? '')
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
    'dist/licenses/zod.txt',
    'dist/licenses/kysely.txt',
  ]
  expect(held).toEqual(expect.arrayContaining(needed))

  const { exports } = await installInto(folder, tarball)
  for (const target of Object.values(exports).flatMap((one) =>
    typeof one === 'string' ? one : Object.values(one),
  ))
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
    'latchkey/client LatchkeyError,createClient',
    'latchkey/express requireFeature,requireProduct',
    'latchkey/hono requireFeature,requireProduct',
    'latchkey/sandbox startSandbox',
    '',
  ])
})
