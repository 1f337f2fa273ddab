import { chmodSync, mkdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Kysely } from 'kysely'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MIGRATIONS } from '../../migrations/index.js'
import type { Finding } from '../../src/cli/doctor/finding.js'
import { doctorCommand } from '../../src/cli/doctor.js'
import { runCli } from '../../src/cli/program.js'
import { DOCUMENTED_POLICY, type Policy } from '../../src/entitlements/policy.js'
import { createBackupFolder } from '../../src/store/backup-folder.js'
import { recordDuplicates } from '../../src/store/event-duplicates.js'
import { insertEvents, type NewEvent } from '../../src/store/events.js'
import { migrate } from '../../src/store/migrate.js'
import { savePolicy } from '../../src/store/policy.js'
import { saveRebuildProgress } from '../../src/store/rebuild-progress.js'
import type { Database } from '../../src/store/schema.js'
import { WALK_START } from '../../src/store/source-walk.js'
import { endpoint, fromFile, writeConfig } from '../config/config-file.js'
import { newEvent, paymentEvent } from '../store/sample-events.js'
import { temporaryFile, temporaryStore } from '../store/temporary-store.js'
import type { CliRun } from './run-cli.js'

const NOW = Date.parse('2026-03-20T12:00:00Z')
const HOUR = 3_600_000
const DAY = 24 * HOUR

interface Patient {
  readonly config: string
  readonly file: string
  readonly db: Kysely<Database>
}

/** A stopped store of the newest schema, and a config that only its owner may read. */
async function patient(told: Record<string, unknown> = {}): Promise<Patient> {
  const file = temporaryFile()
  const db = await temporaryStore(file)
  const config = writeConfig({
    endpoints: { v3: endpoint('live', 'whsec_v3') },
    database: { url: `sqlite:${file}` },
    ...told,
  })
  chmodSync(config, 0o600)
  return { config, file, db }
}

async function doctor({ config }: Pick<Patient, 'config'>, ...args: readonly string[]): Promise<CliRun> {
  let out = ''
  let err = ''
  const context = {
    env: {},
    folder: '/nowhere',
    now: () => NOW,
    isTerminal: false,
    out: (content: string | Uint8Array) => {
      out += content
    },
    err: (text: string) => {
      err += text
    },
  }
  const exitCode = await runCli(['doctor', '--config', config, ...args], context, [doctorCommand])
  return { exitCode, out, err }
}

/** What was found of one thing, and the exit code. */
async function found(who: Pick<Patient, 'config'>, what: string) {
  const { exitCode, out } = await doctor(who, '--json')
  const { findings } = JSON.parse(out) as { findings: readonly Finding[] }
  return { exitCode, findings: findings.filter((finding) => finding.what === what) }
}

async function store({ db }: Patient, ...events: readonly NewEvent[]): Promise<void> {
  await db.transaction().execute((trx) => insertEvents(trx, events))
}

function arrived(receivedAt: number, told: Partial<Omit<NewEvent, 'body'>> = {}): NewEvent {
  const event = paymentEvent({ id: `evt_${receivedAt}`, createdAt: receivedAt })
  return newEvent(event, { receivedAt, ...told })
}

describe('latchkey doctor', () => {
  it('tells each thing on a line of its own, and exits 0 where nothing fails', async () => {
    const { exitCode, out, err } = await doctor(await patient())
    expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' })
    const lines = out.trimEnd().split('\n')
    expect(lines.filter((line) => !line.startsWith('ok    '))).toEqual([
      expect.stringMatching(/^warn {2}daemon +not running, .*: start it: `latchkey serve`$/),
    ])
    expect(lines.map((line) => line.slice(6, 24).trim())).toEqual([
      'config',
      'files',
      'daemon',
      'endpoint v3',
      'schema',
      'integrity',
      'log',
      'disk',
      'clock',
      'deliveries v3',
      'held',
      'quarantined',
      'conflicts',
      'policy',
      'erasures',
      'bodies',
      'sync',
    ])
  })

  it('exits 1 where something fails, after all lines', async () => {
    const who = await patient()
    chmodSync(who.file, 0o644)
    const { exitCode, out, err } = await doctor(who)
    expect({ exitCode, err }).toEqual({ exitCode: 1, err: 'error: 1 check failed\n' })
    expect(out).toContain(`FAIL  files               others may open ${who.file}, of mode 0644: chmod 600 `)
    expect(out).toMatch(/\nok {4}sync /)
  })

  it('exits 2 for a config that is wrong, and for wrong use', async () => {
    expect(await doctor({ config: writeConfig({ port: 1 }) })).toMatchObject({ exitCode: 2, out: '' })
    expect(await doctor(await patient(), '--deep')).toMatchObject({ exitCode: 2, out: '' })
  })

  it('shows what is seldom meant in the config', async () => {
    const who = await patient({ endpoints: { v3: endpoint('live', 'plain') } })
    expect(await found(who, 'config')).toMatchObject({
      exitCode: 0,
      findings: [{ level: 'ok' }, { level: 'warn', detail: expect.stringContaining('whsec_') }],
    })
  })
})

describe('files', () => {
  it('fail where others may read secrets in the config, and warn where there are none', async () => {
    const who = await patient()
    chmodSync(who.config, 0o640)
    expect(await found(who, 'files')).toMatchObject({
      exitCode: 1,
      findings: [{ level: 'fail', detail: `others may read the secrets in ${who.config}, of mode 0640` }],
    })
    const secret = join(dirname(who.config), 'secret')
    writeFileSync(secret, 'whsec_v3', { mode: 0o600 })
    const text = readFileSync(who.config, 'utf8').replace('whsec_v3', fromFile('secret'))
    writeFileSync(who.config, text)
    expect(await found(who, 'files')).toMatchObject({ exitCode: 0, findings: [{ level: 'warn' }] })
  })

  it('warn of a secret that others may read, and fail for one that they may write', async () => {
    const who = await patient({ endpoints: { v3: endpoint('live', fromFile('secret')) } })
    const secret = join(dirname(who.config), 'secret')
    writeFileSync(secret, 'whsec_v3')
    chmodSync(secret, 0o644)
    expect(await found(who, 'files')).toMatchObject({ exitCode: 0, findings: [{ level: 'warn' }] })
    chmodSync(secret, 0o666)
    expect(await found(who, 'files')).toMatchObject({
      exitCode: 1,
      findings: [{ level: 'fail', todo: `chmod 600 ${secret}` }],
    })
  })

  it.each([
    [0o755, 'warn', 0],
    [0o777, 'fail', 1],
  ])('a folder of mode %o: %s', async (mode, level, exitCode) => {
    const who = await patient()
    chmodSync(dirname(who.file), mode)
    expect(await found(who, 'files')).toMatchObject({
      exitCode,
      findings: [{ level, todo: `chmod 700 ${dirname(who.file)}` }],
    })
  })
})

describe('the database', () => {
  it('fails where there is none, and makes none', async () => {
    const file = temporaryFile()
    const config = writeConfig({ database: { url: `sqlite:${file}` } })
    for (let attempt = 0; attempt < 2; attempt += 1) {
      expect(await found({ config }, 'database')).toMatchObject({
        exitCode: 1,
        findings: [{ level: 'fail' }],
      })
    }
  })

  it('fails where the system lets nobody tell whether there is one, and looks at the rest', async () => {
    const file = temporaryFile()
    mkdirSync(dirname(file), { mode: 0o700 })
    // A link to itself: like a folder that may not be entered, it is no proof that nothing is there.
    symlinkSync(basename(file), file)
    const { exitCode, out, err } = await doctor({
      config: writeConfig({ database: { url: `sqlite:${file}` } }),
    })
    expect({ exitCode, err }).toEqual({
      exitCode: 1,
      err: expect.stringMatching(/^error: \d checks failed\n$/),
    })
    expect(out).toContain(`what is in ${dirname(file)} can’t be looked at, `)
    expect(out).toMatch(/\nFAIL {2}database .* can’t be read, .* \(ELOOP\): check database.url\n/)
    expect(out).toMatch(/\nok {4}sync /)
  })

  it.runIf(process.getuid?.() !== 0)('fails where it is another user’s, and looks at the rest', async () => {
    const who = await patient()
    chmodSync(dirname(who.file), 0)
    onTestFinished(() => chmodSync(dirname(who.file), 0o700))
    const { exitCode, out } = await doctor(who)
    expect(exitCode).toBe(1)
    expect(out.match(/^FAIL .*: run this as the user whom it belongs to$/gm)).toHaveLength(3)
    expect(out).toMatch(/\nok {4}sync /)
  })

  it('fails where it is no database at all', async () => {
    const file = temporaryFile()
    mkdirSync(dirname(file), { mode: 0o700 })
    writeFileSync(file, 'no database at all'.repeat(100), { mode: 0o600 })
    const config = writeConfig({ database: { url: `sqlite:${file}` } })
    expect(await found({ config }, 'integrity')).toMatchObject({
      exitCode: 1,
      findings: [
        { level: 'fail', todo: 'stop the daemon, and put a backup in its place: `latchkey restore`' },
      ],
    })
  })

  it('fails where a newer program wrote it, and reads no further', async () => {
    const who = await patient()
    const step = { name: '9999-of-tomorrow', create: () => ({ up: async () => {} }) }
    await migrate(who.db, [...MIGRATIONS, step])
    expect(await found(who, 'schema')).toMatchObject({
      exitCode: 1,
      findings: [{ level: 'fail', detail: expect.stringContaining('9999-of-tomorrow') }],
    })
    expect((await found(who, 'quarantined')).findings).toEqual([])
  })

  it('warns where it is older than the program', async () => {
    const who = await patient()
    const tables = who.db.withTables<{ schema_migrations: { name: string } }>()
    await tables.deleteFrom('schema_migrations').where('name', '>', '0004').execute()
    expect(await found(who, 'schema')).toMatchObject({ exitCode: 0, findings: [{ level: 'warn' }] })
  })
})

it('a write-ahead log that something holds open is worth a look', async () => {
  const who = await patient()
  await who.db.destroy()
  writeFileSync(`${who.file}-wal`, '', { mode: 0o600 })
  truncateSync(`${who.file}-wal`, 300 * 1024 * 1024)
  expect(await found(who, 'log')).toMatchObject({
    exitCode: 0,
    findings: [{ level: 'warn', detail: 'the write-ahead log has 300 MB' }],
  })
})

describe('an endpoint', () => {
  const ending = (...ends: readonly number[]) => ({
    endpoints: {
      v3: endpoint(
        'live',
        ...ends.map((end, n) => ({ secret: `whsec_${n}`, notAfter: new Date(NOW + end).toISOString() })),
      ),
    },
  })

  it.each<[string, Record<string, unknown>, string, number]>([
    ['without a secret that still counts', ending(-DAY, 0), 'fail', 1],
    ['of which the last secret ends soon', ending(-DAY, 13 * DAY), 'warn', 0],
    ['with a secret that has ended beside one that lasts', ending(-DAY, 365 * DAY), 'ok', 0],
    ['with secrets that last', ending(15 * DAY, 365 * DAY), 'ok', 0],
  ])('%s', async (_name, config, level, exitCode) => {
    const findings = [{ level, detail: expect.stringMatching(/^live, /) }]
    expect(await found(await patient(config), 'endpoint v3')).toMatchObject({ exitCode, findings })
  })

  // It may be to prove an import still, for which it has to stay in the config.
  it.each([
    [[-DAY, 365 * DAY], '1 of 2 secrets has ended, and still proves imports'],
    [[-2 * DAY, -DAY, 365 * DAY], '2 of 3 secrets have ended, and still prove imports'],
  ])('is told with the secrets that have ended, which are nothing to do about', async (ends, text) => {
    expect((await found(await patient(ending(...ends)), 'endpoint v3')).findings).toEqual([
      { level: 'ok', what: 'endpoint v3', detail: `live, ${text}`, todo: null },
    ])
  })

  it('shows the last delivery and the usual interval', async () => {
    const who = await patient()
    await store(who, arrived(NOW - 3 * HOUR), arrived(NOW - 2 * HOUR), arrived(NOW - HOUR))
    const detail = 'last at 2026-03-20T11:00:00.000Z, usually every 1h, now 1h ago'
    expect((await found(who, 'deliveries v3')).findings).toEqual([
      { level: 'ok', what: 'deliveries v3', detail, todo: null },
    ])
  })

  it('warns of a silence that is unusually long', async () => {
    const who = await patient()
    const hourly = Array.from({ length: 10 * 24 }, (_, n) => arrived(NOW - 3 * HOUR - n * HOUR))
    await store(who, ...hourly)
    expect(await found(who, 'deliveries v3')).toMatchObject({
      exitCode: 0,
      findings: [{ level: 'warn', detail: expect.stringMatching(/now 3h ago, unusually long$/) }],
    })
  })
})

describe('the clock', () => {
  it.each([
    ['fails where an event arrived later than now', NOW + 120_000, NOW, 'fail', 1],
    ['warns where an event happened well after now', NOW, NOW + 360_000, 'warn', 0],
    ['is fine where the sender’s runs ahead a little', NOW, NOW + 240_000, 'ok', 0],
  ])('%s', async (_name, receivedAt, createdAt, level, exitCode) => {
    const who = await patient()
    await store(who, newEvent(paymentEvent({ createdAt }), { receivedAt }))
    expect(await found(who, 'clock')).toMatchObject({ exitCode, findings: [{ level }] })
  })
})

describe('events', () => {
  const QUARANTINED = { disposition: 'quarantined', reason: 'not_json', event: null } as const
  const HELD = { disposition: 'held', reason: 'customer_unknown' } as const

  it('that are quarantined are counted by reason', async () => {
    const who = await patient()
    await store(who, arrived(NOW - 2, QUARANTINED), arrived(NOW - 1, QUARANTINED))
    expect((await found(who, 'quarantined')).findings).toEqual([
      {
        level: 'warn',
        what: 'quarantined',
        detail: '2 events: live 2 not_json',
        todo: 'see `latchkey events list --disposition quarantined --environment live`',
      },
    ])
  })

  it('that are held are worth a look after a day', async () => {
    const who = await patient()
    await store(who, arrived(NOW - HOUR, HELD))
    expect((await found(who, 'held')).findings).toMatchObject([{ level: 'ok' }])
    await store(who, arrived(NOW - DAY - 1, { ...HELD, environment: 'sandbox' }))
    expect((await found(who, 'held')).findings).toMatchObject([
      {
        level: 'warn',
        detail: '2 events: live 1 customer_unknown, sandbox 1 customer_unknown, some for more than a day',
      },
    ])
  })

  it('whose id came with another body are told', async () => {
    const who = await patient()
    await store(who, newEvent(paymentEvent()))
    const other = newEvent(paymentEvent(), { body: 'another' })
    await who.db.transaction().execute((trx) => recordDuplicates(trx, [other]))
    expect((await found(who, 'conflicts')).findings).toMatchObject([
      { level: 'warn', todo: expect.stringContaining('`latchkey events list --json`') },
    ])
  })
})

describe('the rest', () => {
  it('warns where the configured policy is not the one in force', async () => {
    const who = await patient({ policy: { canceled: 'period_end' } })
    await who.db.transaction().execute((trx) => savePolicy(trx, DOCUMENTED_POLICY))
    expect(await found(who, 'policy')).toMatchObject({
      exitCode: 0,
      findings: [{ level: 'warn', todo: expect.stringContaining('`latchkey policy diff`') }],
    })
  })

  const PERIOD_END = { ...DOCUMENTED_POLICY, canceled: 'period_end' } as const
  const LAPSING = { ...DOCUMENTED_POLICY, lapseAfter: DAY }

  // The configured policy is the documented one. Either command goes on with a rebuild under its own policy alone.
  it.each<[string, string, Policy, Policy]>([
    [
      'under the policy in force, which is configured',
      'go on with it: `latchkey rebuild`',
      DOCUMENTED_POLICY,
      DOCUMENTED_POLICY,
    ],
    [
      'under the policy in force, which is not configured',
      'go on with it: `latchkey rebuild`',
      PERIOD_END,
      PERIOD_END,
    ],
    [
      'under the configured policy, which is not in force',
      'go on with it: `latchkey policy apply`',
      DOCUMENTED_POLICY,
      PERIOD_END,
    ],
    [
      'under another policy',
      'its policy is configured no more: begin anew with `latchkey rebuild`',
      LAPSING,
      PERIOD_END,
    ],
  ])('says how to go on with a rebuild that was interrupted %s', async (_under, todo, policy, inForce) => {
    const who = await patient()
    await who.db.transaction().execute(async (trx) => {
      await savePolicy(trx, inForce)
      await saveRebuildProgress(trx, { policy, place: WALK_START, folded: 7 })
    })
    expect((await found(who, 'rebuild')).findings).toMatchObject([
      { level: 'warn', detail: 'interrupted, 7 sources folded', todo },
    ])
  })

  it.each([
    [null, 'warn', 0],
    [HOUR, 'ok', 0],
    [2 * DAY, 'fail', 1],
  ])('a newest backup of an age of %s ms, where one is due every day', async (age, level, exitCode) => {
    const folder = dirname(temporaryFile())
    const who = await patient({ backup: { folder } })
    mkdirSync(folder)
    if (age !== null) writeFileSync(createBackupFolder(folder, 7).fileOf(NOW - age), '')
    expect(await found(who, 'backup')).toMatchObject({ exitCode, findings: [{ level }] })
  })

  it('warns where the newest backup knows more events than the database, and else says nothing of it', async () => {
    const folder = dirname(temporaryFile())
    const who = await patient({ backup: { folder } })
    expect((await found(who, 'lost')).findings).toEqual([])
    const newest = await temporaryStore(createBackupFolder(folder, 7).fileOf(NOW))
    await newest.transaction().execute((trx) => insertEvents(trx, [newEvent(paymentEvent())]))
    await newest.destroy()
    expect((await found(who, 'lost')).findings).toMatchObject([
      {
        level: 'warn',
        detail: expect.stringContaining('knows 1 event, the database 0'),
        todo: expect.any(String),
      },
    ])
    await store(who, newEvent(paymentEvent()))
    expect((await found(who, 'lost')).findings).toEqual([])
  })

  it('says where no backup can be made, and goes on', async () => {
    const folder = temporaryFile()
    mkdirSync(dirname(folder), { recursive: true })
    writeFileSync(folder, '')
    const who = await patient({ backup: { folder } })
    expect(await found(who, 'backup')).toMatchObject({
      exitCode: 1,
      findings: [
        {
          level: 'fail',
          detail: expect.stringContaining(folder),
          todo: expect.stringContaining('backup.folder'),
        },
      ],
    })
    expect((await found(who, 'sync')).findings).toHaveLength(1)
  })

  it('says nothing of backups where none are configured', async () => {
    expect((await found(await patient(), 'backup')).findings).toEqual([])
  })

  it('finds how roles and groups stand where some are configured', async () => {
    const target = { adapter: 'telegram', groupId: '-1001', environment: 'live' }
    const who = await patient({
      products: { pro_1: { targets: [target] } },
      sync: { telegram: { botToken: 't' } },
    })
    expect((await found(who, 'sync')).findings).toMatchObject([
      { level: 'ok', detail: '1 target, 0 as they should be, 0 under way' },
    ])
  })
})
