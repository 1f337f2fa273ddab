import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import { writeConfig } from '../config/config-file.js'
import { customerStory, deliver } from '../stories.js'
import {
  CONFIG,
  configuredFolder,
  entitlementsOf,
  freePort,
  ROOT,
  runProgram,
  serve,
  startProgram,
  temporaryFolder,
} from '../world.js'
import { blocks, installedCheckout, namedFiles, README } from './readme.js'

const INSTALL = 'npm ci && '
const DEFAULT_PORT = '4680'
const MADE_BY_THE_FIRST_START = ['config.json', 'data/first-key.txt']

const KEY_FROM_FILE = 'export LATCHKEY_KEY=$(cat data/first-key.txt)'

/** `script` of util-linux runs a program on a terminal of its own; nothing else does on every machine. */
const HAS_SCRIPT = /util-linux/.test(spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout ?? '')
const HAS_CURL = spawnSync('curl', ['--version']).status === 0

/** The names in an object, and in the first item of a list: what a reader may rely on in an answer. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf)
  if (typeof value !== 'object' || value === null) return '…'
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shapeOf(inner)]))
}

describe('the commands of the README', () => {
  it('do what it says, one after the other, in a checkout that needs no network', async () => {
    const [
      start,
      grant,
      takeBack,
      query,
      checkConfig,
      policy,
      doctor,
      look,
      byHand,
      createKey,
      test,
      ...more
    ] = blocks('sh')
    expect([start, test, more]).toEqual([`${INSTALL}npm start`, `${INSTALL}npm test`, []])

    const folder = installedCheckout()
    const port = String(await freePort())
    const env = { LATCHKEY_PORT: port, npm_config_offline: 'true', npm_config_update_notifier: 'false' }
    async function run(block = ''): Promise<string> {
      const script = block.replaceAll(DEFAULT_PORT, port)
      const { code, stdout, stderr } = await runProgram(['sh', '-ec', script], { folder, env })
      expect({ block, code, ...(code === 0 ? {} : { stdout, stderr }) }).toEqual({ block, code: 0 })
      return stdout
    }

    const daemon = await serve(folder, env, ['npm', 'start'])
    expect(daemon.url).toBe(`http://127.0.0.1:${port}`)
    for (const name of MADE_BY_THE_FIRST_START) expect(existsSync(join(folder, name))).toBe(true)

    expect(await run(grant)).toMatch(/^payment\.authorized .* applied\npro_1 {2}active {2}since \d.*\n$/)
    expect(await run(takeBack)).toMatch(/^payment\.refunded .* applied\npro_1 {2}refunded {2}until \d.*\n$/)
    if (HAS_CURL) {
      expect(README).toContain(`\`${KEY_FROM_FILE}\``)
      const answer = JSON.parse(await run(`${KEY_FROM_FILE}\n${query}`))
      expect(answer).toMatchObject({
        customerId: 'cus_1',
        environment: 'sandbox',
        entitlements: [{ productId: 'pro_1', active: false, status: 'refunded' }],
      })
      expect(shapeOf(answer)).toEqual(shapeOf(JSON.parse(blocks('json').at(-1) ?? '')))
    }
    expect(await run(checkConfig)).toBe(`ok: ${join(folder, 'config.json')}\n`)

    expect(await run(policy)).toMatch(/^nobody’s access would change\n/)

    expect(await run(doctor)).toMatch(/^ok .*\n/)

    expect(await run(look)).toBe(
      `no such event is stored\nwrote 2 lines to ${join(folder, 'events.jsonl')}\n`,
    )

    const acts = (await run(byHand)).matchAll(/^done in \w+: man_\w+\n(.*)$/gm)
    expect([...acts].map(([, line]) => line)).toEqual([
      expect.stringMatching(/^pro_1 {2}ending {2}until \d/),
      'pro_1  blocked',
      expect.stringMatching(/^pro_1 {2}ending {2}/),
      expect.stringMatching(/^pro_1 {2}revoked {2}/),
      expect.stringMatching(/^pro_1 {2}revoked {2}/),
    ])

    const [, key = ''] = /^API key "my-app" \(shown only now\): (lk_\S+)\n/.exec(await run(createKey)) ?? []
    process.kill(daemon.pid, 'SIGHUP')
    await daemon.until(/read the config again/)
    expect(await entitlementsOf(daemon, 'cus_1', key)).toEqual([
      { productId: 'pro_1', active: false, status: 'refunded' },
    ])
  })

  it.skipIf(!HAS_CURL || !HAS_SCRIPT)(
    'ask with the key that a first start printed on a terminal',
    async () => {
      const [, grant, , query = ''] = blocks('sh')
      const folder = installedCheckout()
      const port = String(await freePort())
      const env = { LATCHKEY_PORT: port, npm_config_offline: 'true', npm_config_update_notifier: 'false' }
      const daemon = await serve(folder, env, ['script', '-qec', 'npm start', '/dev/null'])
      // It has a session of its own there, out of reach of what ends the rest of a test.
      onTestFinished(() => void process.kill(daemon.pid, 'SIGKILL'))
      const [, line = ''] = await daemon.until(/^ *(export LATCHKEY_KEY=lk_\S+)\r?$/m)
      const script = [line, grant, query].join('\n').replaceAll(DEFAULT_PORT, port)
      const { code, stdout } = await runProgram(['sh', '-ec', script], { folder, env })
      expect(code).toBe(0)
      expect(JSON.parse(stdout.slice(stdout.indexOf('{')))).toMatchObject({
        customerId: 'cus_1',
        entitlements: [{ productId: 'pro_1', active: true }],
      })
      expect(existsSync(join(folder, 'data', 'first-key.txt'))).toBe(false)
    },
  )

  it('test it as the project itself is tested', () => {
    const commands = readFileSync(join(ROOT, '.ci', 'run'), 'utf8')
      .trimEnd()
      .split('\n')
      .slice(-2)
    expect(blocks('sh')).toContain(commands.join(' && '))
  })

  it('are scripts that the project has', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const named = [...README.matchAll(/`npm run ([\w-]+)/g)].map(([, name = '']) => name)
    expect(named.length).toBeGreaterThan(0)
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(named))
  })
})

describe('the examples of the README', () => {
  it('show an endpoint as a config takes it', () => {
    const [endpoints = ''] = blocks('json')
    const path = writeConfig(`{${endpoints}}`)
    const { config } = loadConfig({ path, env: { LATCHKEY_LIVE_SECRET: 'whsec_1' } })
    expect(config.endpoints).toMatchObject([{ name: 'live', environment: 'live' }])
  })

  it('show products and platforms as a config takes them', () => {
    const [, sync = ''] = blocks('json')
    const env = {
      DISCORD_BOT_TOKEN: 'd',
      TELEGRAM_BOT_TOKEN: 't',
      LATCHKEY_WEBHOOK_SECRET: `whsec_${'A'.repeat(44)}`,
    }
    const { config } = loadConfig({ path: writeConfig(`{${sync}}`), env })
    expect(config.products.flatMap(({ targets }) => targets.map(({ adapter }) => adapter))).toEqual([
      'discord',
      'telegram',
    ])
    expect(config.sync.webhook).toMatchObject({ secrets: [env.LATCHKEY_WEBHOOK_SECRET] })
  })

  it('show a receiver that verifies what the outbound webhook sends', async () => {
    const port = await freePort()
    const folder = temporaryFolder()
    const secret = `whsec_${Buffer.from('thirty-two bytes for the example').toString('base64')}`
    const [receiver = ''] = blocks('js')
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    writeFileSync(
      join(folder, 'receiver.mjs'),
      receiver.replace('listen(4690)', `listen(${port}, () => console.log('listens'))`),
    )
    const running = startProgram([process.execPath, 'receiver.mjs'], {
      folder,
      env: { LATCHKEY_WEBHOOK_SECRET: secret },
    })
    await running.until(/listens/)
    const url = `http://localhost:${port}/access`
    const daemon = await serve(configuredFolder({ ...CONFIG, sync: { webhook: { url, secret } } }))
    await deliver(daemon.url, customerStory(0).events)
    await running.until(/^cus_0 pro_1 true$/m)
    expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(401)
  })

  it('are JSON where they say so', () => {
    const examples = blocks('json')
    expect(examples).toHaveLength(3)
    for (const text of examples) {
      expect(JSON.parse(text.startsWith('{') ? text : `{${text}}`)).toEqual(expect.any(Object))
    }
  })

  it('name files that are there', () => {
    const names = namedFiles()
    expect(names).toEqual(expect.arrayContaining(['config.example.json', 'src/daemon.ts', 'LICENSE']))
    const missing = names.filter((name) => !existsSync(join(ROOT, name)))
    expect(missing.filter((name) => !MADE_BY_THE_FIRST_START.includes(name))).toEqual([])
  })
})
