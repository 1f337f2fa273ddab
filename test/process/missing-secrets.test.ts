import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { fromEnv, fromFile } from '../config/config-file.js'
import { freePort, latchkey, runProgram } from '../setup/program.js'
import { runHere } from './in-process.js'
import { customerStory, deliver } from './load.js'
import { CONFIG, configuredFolder, SECRET, type ServedDaemon, serve } from './served.js'

const SECRETS = {
  LIVE: SECRET,
  BOT: 'bot_token_0123456789',
  OUT: `whsec_${'A'.repeat(32)}`,
  API: 'sk_0123456789',
}
const BESIDE = 'beside.txt'
const UNSET = "which is not set in this process's environment"

/** A daemon whose secrets are in its own environment, and in a file that only it has seen. */
async function servedApart(): Promise<{
  folder: string
  daemon: ServedDaemon
  env: { LATCHKEY_PORT: string }
}> {
  const nobody = `http://127.0.0.1:${await freePort()}`
  const folder = configuredFolder({
    ...CONFIG,
    endpoints: {
      live: { environment: 'live', secrets: [fromEnv('LIVE')] },
      beside: { environment: 'live', secrets: [fromFile(BESIDE)] },
      sandbox: { environment: 'sandbox', secrets: ['whsec_sandbox_0123456789abcdef'] },
    },
    products: {
      pro_1: {
        targets: [{ adapter: 'discord', guildId: '1100000000000000010', roleId: '1100000000000000012' }],
      },
    },
    sync: {
      discord: { botToken: fromEnv('BOT'), apiUrl: nobody },
      webhook: { url: nobody, secret: fromEnv('OUT') },
    },
    provider: { baseUrl: 'https://payments.example', apiKey: fromEnv('API') },
  })
  writeFileSync(join(folder, BESIDE), 'whsec_beside_0123456789abcdef\n')
  const env = { LATCHKEY_PORT: String(await freePort()) }
  const daemon = await serve(folder, { ...SECRETS, ...env })
  rmSync(join(folder, BESIDE))
  await deliver(daemon.url, customerStory(0).events)
  return { folder, daemon, env }
}

const NEED_NONE = [
  'check cus_0',
  'explain cus_0 pro_1',
  'events list',
  'events show evt_0_paid',
  'events body evt_0_paid',
  'events export',
  'keys list',
  'policy show',
  'policy diff',
  'doctor',
  'doctor --thorough',
  'sync status',
  'sync plan',
  'sync pause',
  'sync resume',
  'grant cus_7 pro_1 --reason support',
  'revoke cus_7 pro_1',
  'block cus_7 --reason support',
  'unblock cus_7',
  'link cus_7 --community 1100000000001000001',
  'erase cus_8 --yes',
  'replay --dry-run',
  'replay',
  'rebuild',
  'rebuild --verify',
  'policy apply',
]

const WITH_A_DAEMON = [
  'sync check',
  'sync run',
  'backup backup.db',
  'keys create --name ops --scope read --environment live',
]
const WITHOUT_A_DAEMON = ['migrate', 'compact', 'restore backup.db']

describe('in a shell without the secrets of the config', () => {
  it('every command works that needs none, beside a running daemon and with none, and doctor says what it did not check', async () => {
    const { folder, daemon } = await servedApart()
    const expectDone = async (line: string) => {
      // No platform is within reach, which this one fails for.
      const code = line === 'sync check' ? 1 : 0
      const done = await runHere(folder, line.split(' '))
      expect({ line, ...done }).toMatchObject({
        line,
        code,
        stderr: expect.not.stringMatching(/config file|secret/),
      })
    }
    const { stdout } = await runHere(folder, ['doctor'])
    const unchecked = 'and so is not checked'
    expect(stdout).toContain(`endpoints.live.secrets[0]: names the variable LIVE, ${UNSET}, ${unchecked}\n`)
    expect(stdout).toContain(
      `endpoints.beside.secrets[0]: names the file ${BESIDE}, which can't be read (ENOENT), ${unchecked}\n`,
    )
    for (const line of [...NEED_NONE, ...WITH_A_DAEMON]) await expectDone(line)
    daemon.signal('SIGTERM')
    await daemon.exit
    for (const line of [...NEED_NONE, ...WITHOUT_A_DAEMON]) await expectDone(line)
  })

  it('trigger needs the secret that it signs with, and no other', async () => {
    const { folder, env } = await servedApart()
    const trigger = (...args: string[]) => runHere(folder, ['trigger', 'payment.authorized', ...args], env)
    expect(await trigger()).toMatchObject({ code: 0, stdout: expect.stringMatching(/ applied\n$/) })
    expect(await trigger('--live')).toEqual({
      code: 2,
      stdout: '',
      stderr: `error: the config file ${folder}/config.json has a problem\n  endpoints.live.secrets[0]: names the variable LIVE, ${UNSET}\n`,
    })
    expect(await trigger('--live', '--endpoint', 'beside')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('\n  endpoints.beside.secrets[0]: names the file beside.txt, '),
    })
    const stored = await runHere(folder, ['events', 'list', '--environment', 'live', '--json'])
    expect(JSON.parse(stored.stdout).items).toHaveLength(customerStory(0).events.length)
  })

  it('import into the database of no daemon needs the secrets of the endpoints that its lines name', async () => {
    const { folder, daemon, env } = await servedApart()
    await runHere(folder, ['trigger', 'payment.authorized'], env)
    for (const name of ['live', 'sandbox']) {
      await runHere(folder, ['events', 'export', '--environment', name, '--output', `${name}.jsonl`])
    }
    daemon.signal('SIGTERM')
    await daemon.exit
    const into = configuredFolder(readFileSync(join(folder, 'config.json'), 'utf8'))

    const other = await runHere(into, ['import', join(folder, 'sandbox.jsonl')])
    expect(other).toEqual({ code: 0, stdout: '1 line, 1 applied\n', stderr: '' })
    for (const args of [['--dry-run'], []]) {
      expect(await runHere(into, ['import', join(folder, 'live.jsonl'), ...args])).toEqual({
        code: 2,
        stdout: '',
        stderr: `error: the config file ${into}/config.json has a problem\n  endpoints.live.secrets[0]: names the variable LIVE, ${UNSET}\n`,
      })
    }
    const imported = await runHere(into, ['import', join(folder, 'live.jsonl')], { LIVE: SECRET })
    expect(imported).toEqual({ code: 0, stdout: '2 lines, 2 applied\n', stderr: '' })
  })

  it('serve and config check need all of them', async () => {
    const { folder, daemon } = await servedApart()
    daemon.signal('SIGTERM')
    await daemon.exit
    const places = [
      'endpoints.live.secrets[0]',
      'endpoints.beside.secrets[0]',
      'sync.discord.botToken',
      'sync.webhook.secret',
      'provider.apiKey',
    ]
    for (const { code, stdout, stderr } of [
      await runProgram(latchkey('serve'), { folder }),
      await runHere(folder, ['config', 'check']),
    ]) {
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect([...stderr.matchAll(/^ {2}(\S+): /gm)].map(([, place]) => place)).toEqual(places)
    }
  })
})
