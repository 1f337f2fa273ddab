import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import { startDiscord } from '../platforms/discord-server.js'
import { deliver, eventsOf, storiesOf } from '../stories.js'
import {
  API_KEY,
  built,
  configuredFolder,
  everyCommand,
  latchkey,
  MAY_ALL,
  runProgram,
  serveHere,
} from '../world.js'

/** A command line, what it answers in JSON, and its exit code where that is not 0. */
type Ran = readonly [words: string, answer: object, code?: number]

const BESIDE_A_DAEMON: readonly Ran[] = [
  ['trigger payment.authorized --live --customer cus_7 --product pro_1', { disposition: 'applied' }],
  ['check cus_7 pro_1 --url <url>', { active: true }],
  ['explain cus_1 pro_1', { entitlement: { status: 'refunded' } }],
  ['changes --customer cus_7', { items: [{ customerId: 'cus_7', productId: 'pro_1' }], hasMore: false }],
  ['events list --limit 1', { items: [{ customerId: 'cus_7' }], hasMore: true }],
  ['events show evt_0_paid', { id: 'evt_0_paid', disposition: 'applied' }],
  ['events show evt_9', { error: { code: 'event_not_found' } }, 1],
  ['events body evt_0_paid', { id: 'evt_0_paid', bodyBase64: expect.any(String) }],
  ['events export --output events.jsonl', { lines: 6 }],
  ['import events.jsonl', { lines: 6, duplicates: 6 }],
  ['send events.jsonl --live', { lines: 6, duplicates: 6 }],
  ['grant cus_2 pro_1 --reason case', { entitlements: [{ productId: 'pro_1', status: 'active' }] }],
  ['revoke cus_2 pro_1', { entitlements: [{ status: 'revoked' }] }],
  ['block cus_2 pro_1 --reason case', { entitlements: [{ status: 'blocked' }] }],
  ['unblock cus_2 pro_1', { entitlements: [{ status: 'revoked' }] }],
  ['link cus_2 --community 80351110224678912', { eventId: expect.stringMatching(/^man_/) }],
  ['erase cus_2 --yes', { customerId: 'cus_2', finishedAt: expect.any(String) }],
  ['erase cus_2', { error: { code: 'usage' } }, 2],
  ['keys list', { keys: [{ name: 'operator' }] }],
  ['endpoints list', { endpoints: [{ name: 'live', serviceId: null, generation: 'v3' }], findings: [] }],
  ['endpoints register --url https://a.example/webhooks/v3', { error: { code: 'usage' } }, 2],
  ['endpoints rotate live', { error: { code: 'usage' } }, 2],
  ['endpoints update live --enable', { error: { code: 'usage' } }, 2],
  ['endpoints disable live', { error: { code: 'usage' } }, 2],
  ['init', { error: { code: 'config_invalid' } }, 2],
  ['init --config other.json', { key: null, keyFile: expect.stringMatching(/first-key\.txt$/) }],
  ['config check', { ok: true }],
  ['status', { ready: true }],
  ['console', { url: expect.stringMatching(/^http/) }],
  ['policy show', { differs: [] }],
  ['policy diff', { gains: 0, losses: 0 }],
  ['policy apply', { gains: 0, losses: 0 }],
  ['rebuild', { gains: 0, losses: 0 }],
  ['replay', { read: 6, changed: 0 }],
  ['backfill', { error: { code: 'payments_api_not_configured' } }, 1],
  ['sync status', { paused: false, targets: [{ state: 'ok' }] }],
  ['sync plan', { calls: [] }],
  ['sync run', { done: true }],
  ['sync check', { ok: true }],
  ['sync pause', { paused: true }],
  ['sync resume', { paused: false }],
  ['sync messages', { items: [] }],
  ['sync replay --from 2026-01-01T00:00:00Z', { messages: 0 }],
  ['sync test odd', { error: { code: 'webhook_not_found' } }, 1],
  ['backup backup.db', { file: expect.stringMatching(/backup\.db$/) }],
  ['customers cus_', { items: expect.any(Array) }],
  ['doctor', { findings: expect.any(Array) }],
]

const WITHOUT_A_DAEMON: readonly Ran[] = [
  ['migrate', { steps: [] }],
  ['compact', { after: expect.any(Number) }],
  ['restore backup.db', { erasedAgain: 0 }],
  ['keys create --name second --scope read --environment live', { key: expect.stringMatching(/^lk_/) }],
  ['keys rotate second --expires 90d', { inUse: false, oldIsValidUntil: expect.any(String) }],
  ['keys revoke second', { inUse: false }],
]

it('every command runs as the built program, answers in JSON, and exits with its code', async () => {
  const discord = await startDiscord()
  const folder = configuredFolder({
    ...MAY_ALL,
    products: { pro_1: { targets: [{ adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }] } },
    sync: { discord: { botToken: BOT_TOKEN, apiUrl: discord.url } },
  })
  const daemon = await serveHere(folder)
  await deliver(daemon.url, eventsOf(storiesOf(0, 2)))

  const expectAnswer = async ([line, answer, code = 0]: Ran) => {
    const words = line
      .replace('<url>', daemon.url)
      .concat(/^(trigger|send) /.test(line) ? ` --url ${daemon.url}` : '')
    const exit = await built(folder, `${words} --json`, { LATCHKEY_API_KEY: API_KEY })
    const [told, silent] = code === 0 ? [exit.stdout, exit.stderr] : [exit.stderr, exit.stdout]
    expect({ line, code: exit.code, silent }).toEqual({ line, code, silent: '' })
    expect(JSON.parse(told)).toMatchObject(answer)
  }
  for (const one of BESIDE_A_DAEMON) await expectAnswer(one)
  await daemon.stop()
  for (const one of WITHOUT_A_DAEMON) await expectAnswer(one)

  const ran = [...BESIDE_A_DAEMON, ...WITHOUT_A_DAEMON].map(([line]) => line)
  // Tests of their own run these as the built program.
  const left = everyCommand().filter((name) => !/^(?:serve|reload|stop|sandbox .*)$/.test(name))
  expect(left.filter((name) => !ran.some((line) => `${line} `.startsWith(`${name} `)))).toEqual([])
})

it('the built program shows its help, and a wrong config without a stack', async () => {
  const folder = configuredFolder({ nonsense: true })
  expect(await built(folder, '--help')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Usage: latchkey/),
  })
  expect(await built(folder, 'check cus_1')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /^error: the config file .* has a problem\n {2}nonsense: is not a known key\n$/,
    ),
  })
})

it('an export ends quietly where nobody reads on, and an import reads what is piped in, packed', async () => {
  const folder = configuredFolder()
  const daemon = await serveHere(folder)
  // More than a pipe holds.
  await deliver(daemon.url, eventsOf(storiesOf(0, 120)))
  await daemon.stop()
  const inShell = (script: string) =>
    runProgram(['sh', '-c', script.replace('latchkey', latchkey().join(' '))], { folder })
  const first = await inShell('latchkey events export | head -n 1')
  expect(first).toMatchObject({ code: 0, stderr: '' })
  expect(JSON.parse(first.stdout)).toMatchObject({ endpoint: 'live' })

  writeFileSync(join(folder, 'events.jsonl'), `${first.stdout}nonsense\n`)
  await serveHere(folder)
  const imported = await inShell('latchkey import - < events.jsonl')
  expect(imported).toMatchObject({ code: 1, stdout: '2 lines, 1 duplicate, 1 refused\n' })
  expect(imported.stderr).toContain('line 2: line_invalid: is not JSON\n')
})
