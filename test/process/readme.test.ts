import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { API_SCOPES } from '../../src/handlers/api-key.js'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID } from '../platforms/discord-ids.js'
import { startDiscord } from '../platforms/discord-server.js'
import { startTelegram, BOT_TOKEN as TELEGRAM_TOKEN } from '../platforms/telegram-server.js'
import { eventually } from '../setup/eventually.js'
import { freePort } from '../setup/free-port.js'
import {
  CONFIG,
  configuredFolder,
  keyEntry,
  latchkey,
  ROOT,
  type RunningProgram,
  type ServedDaemon,
  serve,
  startProgram,
  temporaryFolder,
} from '../world.js'
import {
  blocks,
  configIn,
  type Fence,
  fencesOf,
  firstLine,
  installedCheckout,
  NOT_RUN,
  openShell,
  type Page,
  patternOf,
  type Shell,
  shapeOf,
  textOf,
} from './readme.js'

const DEFAULT_PORT = '4680'
const FIRST_KEY = 'data/first-key.txt'
const KEY_FROM_FILE = `export LATCHKEY_API_KEY=$(cat ${FIRST_KEY})`
const ROLES = 'docs/roles-and-groups.md'
const OUTBOUND = 'docs/webhooks.md'
const GROUP_ID = -1001234567890
const BOTH = ['live', 'sandbox'] as const

/** Generous, for a machine that has other work too. */
const TIMEOUT_MS = 300_000

/** May do everything: what the pages write as `lk_…`. */
const READERS_KEY = 'lk_key_of_the_reader'
const READERS_ENTRY = { ...keyEntry('reader', READERS_KEY), scopes: API_SCOPES, environments: BOTH }

/** `script` of util-linux runs a program on a terminal of its own; nothing else does on every machine. */
const HAS_SCRIPT = /util-linux/.test(spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout ?? '')
const MISSING_TOOLS = ['curl', 'openssl', 'gzip'].filter(
  (tool) => spawnSync(tool, [tool === 'openssl' ? 'version' : '--version']).status !== 0,
)
const HAS_CURL = !MISSING_TOOLS.includes('curl')
const canRun = (text: string): boolean =>
  NOT_RUN[firstLine(text)] === undefined && !MISSING_TOOLS.some((tool) => text.includes(tool))

/** Somebody who reads the pages: a folder, a terminal in it, and the daemon that was started there. */
interface Reader {
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
  readonly shell: Shell
  daemon: ServedDaemon | null
  /** What no page can know, by how the pages write it. */
  readonly known: Record<string, () => string | Promise<string>>
}

async function readerIn(folder: string, secrets: Readonly<Record<string, string>> = {}): Promise<Reader> {
  const port = String(await freePort())
  const env = {
    LATCHKEY_PORT: port,
    SANDBOX_PORT: String(await freePort()),
    npm_config_offline: 'true',
    npm_config_update_notifier: 'false',
    ...secrets,
  }
  const reader: Reader = {
    folder,
    env,
    shell: openShell(folder, env),
    daemon: null,
    known: {
      [DEFAULT_PORT]: () => port,
      'lk_…': () => READERS_KEY,
      '/srv/': () => `${folder}/srv/`,
    },
  }
  return reader
}

/** As after a first start. */
async function readerWithDaemon(): Promise<Reader> {
  const reader = await readerIn(temporaryFolder())
  await reader.shell.run('latchkey init')
  reader.daemon = await serve(reader.folder, reader.env)
  return reader
}

const countReloads = ({ daemon }: Reader): number =>
  daemon?.logged().filter(({ msg }) => String(msg).startsWith('read the config again')).length ?? 0

/** Does what one block says, and answers with what was printed. */
async function perform(reader: Reader, text: string): Promise<string> {
  if (/^(npx )?latchkey sandbox &$/.test(text)) {
    const { folder, env } = reader
    const sandbox = startProgram(latchkey('sandbox', '--port', env.SANDBOX_PORT ?? ''), { folder, env })
    await sandbox.until(/^delivers to /m)
    return ''
  }
  const start = /^(npm ci && npm start|latchkey serve)$/m.exec(text)
  let script = text.slice(0, start?.index)
  for (const [written, real] of Object.entries(reader.known)) {
    if (script.includes(written)) script = script.replaceAll(written, await real())
  }
  const reloads = countReloads(reader)
  const printed = await reader.shell.run(script)
  // What the daemon logs comes by another pipe than what the command prints.
  if (text.includes('latchkey reload')) await eventually(() => expect(countReloads(reader)).toBe(reloads + 1))
  if (text.includes('latchkey stop')) await reader.daemon?.exit
  if (start !== null) {
    const isFirst = start[0] !== 'latchkey serve'
    reader.daemon = await serve(reader.folder, reader.env, isFirst ? ['npm', 'start'] : undefined)
    if (isFirst) await reader.shell.run(KEY_FROM_FILE)
  }
  return printed
}

/**
 * Follows a page from top to bottom, and compares what it shows with what was printed.
 * @param edits whether the page's config is put into the reader's
 * @param without the commands that this reader leaves out
 */
async function follow(
  reader: Reader,
  page: Page,
  { edits = false, without = /^$/ }: { readonly edits?: boolean; readonly without?: RegExp } = {},
): Promise<void> {
  let printed = ''
  for (const fence of fencesOf(page)) {
    const { language, text, outputOf } = fence
    if (without.test(outputOf ?? text)) continue
    if (language === 'sh') {
      if (canRun(text)) printed = await perform(reader, text)
    } else if (outputOf !== null) {
      if (canRun(outputOf)) expectOutput(fence, printed.trimEnd())
    } else if (edits && language === 'json') {
      changeConfig(reader.folder, configIn(fence))
    }
  }
}

function expectOutput({ page, language, text, outputOf }: Fence, printed: string): void {
  const [output, shown] =
    language === 'json'
      ? [shapeOf(JSON.parse(printed)), shapeOf(JSON.parse(text))]
      : [printed, expect.stringMatching(patternOf(text))]
  expect({ page, outputOf, output }).toEqual({ page, outputOf, output: shown })
}

function readConfig(folder: string): Readonly<Record<string, unknown>> {
  return JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as Readonly<Record<string, unknown>>
}

function changeConfig(folder: string, changes: Readonly<Record<string, unknown>>): void {
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...readConfig(folder), ...changes }, null, 2))
}

function addKeys(folder: string, added: readonly object[]): void {
  const { keys } = readConfig(folder).api as { readonly keys: readonly object[] }
  changeConfig(folder, { api: { keys: [...keys, ...added] } })
}

/** The receiver that the page shows, as it is but for its port. */
async function startShownReceiver(folder: string, secret: string): Promise<RunningProgram & { url: string }> {
  const [receiver] = blocks('js', [OUTBOUND])
  const port = await freePort()
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(ROOT, join(folder, 'node_modules', 'latchkey'))
  const listening = `listen(${port}, () => console.log('listens'))`
  writeFileSync(join(folder, 'receiver.mjs'), receiver?.text.replace(/listen\(\d+\)/, () => listening) ?? '')
  const env = { LATCHKEY_WEBHOOK_SECRET: secret }
  const running = startProgram([process.execPath, 'receiver.mjs'], { folder, env })
  await running.until(/listens/)
  return { ...running, url: `http://localhost:${port}/access` }
}

describe('the examples of the README and of docs/', { timeout: TIMEOUT_MS }, () => {
  it('do what they say, one after the other, in a checkout that needs no network', async () => {
    expect(textOf('README.md')).toContain(`\`${KEY_FROM_FILE}\``)
    const reader = await readerIn(installedCheckout())
    // The pages show the answers about the one customer of the single events.
    await follow(reader, 'README.md', { without: /latchkey sandbox/ })
    addKeys(reader.folder, [READERS_ENTRY])
    await follow(reader, 'docs/config.md')
    // The page reloads the config before its first question.
    changeConfig(reader.folder, { products: { pro_1: { features: ['export'] } } })
    await follow(reader, 'docs/api.md')
    await follow(reader, 'docs/policy.md', { edits: true })
    await follow(reader, 'docs/operating.md')
    await follow(reader, 'docs/data-protection.md')
    await follow(reader, 'docs/upgrading.md')
  })

  it('bring a newcomer to a customer who comes and goes', async () => {
    await follow(await readerWithDaemon(), 'README.md', { without: /^(?!.*latchkey sandbox)/s })
  })

  it('play a renewal, a refund and an upgrade with the sandbox', async () => {
    const reader = await readerWithDaemon()
    await follow(reader, 'docs/sandbox.md')
    const [, truth = ''] = (await reader.shell.run('latchkey sandbox show truth')).split('\naccess')
    const checked = await reader.shell.run('latchkey check --email carla@example.com')
    expect(checked.match(/^pro_\w+(?= +active)/gm)).toEqual(truth.match(/pro_\w+/g))
  })

  it('give and take roles, let people into groups, and send changes to the receiver shown', async () => {
    const discord = await startDiscord()
    discord.guild.join(accountId(1))
    const telegram = await startTelegram()
    telegram.addGroup(GROUP_ID)
    const folder = configuredFolder({ ...CONFIG, api: { keys: [READERS_ENTRY] } })
    const secret = `whsec_${Buffer.from('thirty-two bytes for the example').toString('base64')}`
    const receiver = await startShownReceiver(folder, secret)
    const reader = await readerIn(folder, {
      DISCORD_BOT_TOKEN: BOT_TOKEN,
      TELEGRAM_BOT_TOKEN: TELEGRAM_TOKEN,
      LATCHKEY_WEBHOOK_SECRET: secret,
    })
    const [shown] = blocks('json', [ROLES]).map(configIn)
    const { products, sync } = shown as { products: object; sync: Record<string, object> }
    changeConfig(folder, {
      products,
      sync: {
        discord: { ...sync.discord, apiUrl: discord.url },
        telegram: { ...sync.telegram, apiUrl: telegram.url },
        webhook: { ...sync.webhook, url: receiver.url },
        removals: { atMost: 0, percent: 0 },
      },
    })
    reader.daemon = await serve(folder, reader.env)
    await reader.shell.run(
      `export URL=${reader.daemon.url} AUTH='Authorization: Bearer ${READERS_KEY}' LATCHKEY_API_KEY=${READERS_KEY}`,
    )
    const holders = () => discord.guild.holders(GOLD_ROLE_ID)
    reader.known['<hash>'] = async () => {
      await eventually(() => expect(holders()).toEqual([accountId(1)]))
      await reader.shell.run('latchkey block cus_1 --reason "a test"')
      return eventually(async () => {
        const plan = JSON.parse(await reader.shell.run('latchkey sync plan --json')) as {
          hash: string | null
        }
        expect(plan.hash).not.toBeNull()
        return String(plan.hash)
      })
    }

    await follow(reader, ROLES)
    reader.known['<message>'] = async () => {
      const { items } = JSON.parse(await reader.shell.run('latchkey sync messages --json'))
      return items[0].id
    }
    await follow(reader, OUTBOUND)

    expect(holders()).toEqual([])
    await receiver.until(/^cus_1 pro_1 true\n(.*\n)*cus_1 pro_1 false$/m)
    expect((await fetch(receiver.url, { method: 'POST', body: '{}' })).status).toBe(401)
  })

  it.skipIf(!HAS_CURL || !HAS_SCRIPT)(
    'ask with the key that a first start printed on a terminal',
    async () => {
      const examples = blocks('sh', ['README.md'])
      const first = examples.find(({ text }) => text.includes('latchkey trigger'))
      const query = examples.find(({ text }) => text.startsWith('curl'))
      const folder = installedCheckout()
      const { env, known } = await readerIn(folder)
      const shell = openShell(folder, env, true)
      const daemon = await serve(folder, env, ['script', '-qec', 'npm start', '/dev/null'])
      // It has a session of its own there, out of reach of what ends the rest of a test.
      onTestFinished(() => void process.kill(daemon.pid, 'SIGKILL'))
      const [, line = ''] = await daemon.until(/^ *(export LATCHKEY_API_KEY=lk_\S+)\r?$/m)
      const port = String(await known[DEFAULT_PORT]?.())
      const script = [line, first?.text, query?.text].join('\n').replaceAll(DEFAULT_PORT, port)
      const printed = await shell.run(script)
      expect(JSON.parse(printed.slice(printed.indexOf('{')))).toMatchObject({
        customerId: 'cus_1',
        entitlements: [{ productId: 'pro_1', active: true }],
      })
      expect(existsSync(join(folder, FIRST_KEY))).toBe(false)
    },
  )

  it('test the project as it tests itself', () => {
    const commands = readFileSync(join(ROOT, '.ci', 'run'), 'utf8')
      .trimEnd()
      .split('\n')
      .slice(-2)
    expect(blocks('sh', ['README.md']).map(({ text }) => text)).toContain(commands.join(' && '))
  })
})
