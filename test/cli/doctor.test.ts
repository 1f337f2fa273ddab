import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { Kysely } from 'kysely'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MIGRATIONS } from '../../migrations/index.js'
import { doctorCommand } from '../../src/cli/doctor.js'
import { runCli } from '../../src/cli/program.js'
import type { Finding } from '../../src/doctor/finding.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { backupFileAt } from '../../src/operations/backup-folder.js'
import { recordArrivals } from '../../src/store/deliveries.js'
import { insertEvents, type NewEvent, recordDuplicates } from '../../src/store/events.js'
import { migrate } from '../../src/store/migrate.js'
import { NOTHING_READ, saveJob } from '../../src/store/recompute-job.js'
import type { Database } from '../../src/store/schema.js'
import { savePolicy } from '../../src/store/settings.js'
import { endpoint, temporaryFolder, writeConfig } from '../config/config-file.js'
import { paymentEvent } from '../entitlements/events.js'
import { newEvent } from '../store/events.js'
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
    endpoints: { v3: endpoint('live', 'whsec_v3_0123456789abcdef') },
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
  await db.transaction().execute(async (trx) => {
    await insertEvents(trx, events)
    await recordArrivals(trx, events)
  })
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
      'backup',
      'sync',
    ])
  })

  it('exits 1 where something fails, after all lines', async () => {
    const who = await patient()
    chmodSync(dirname(who.file), 0o755)
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
    const who = await patient({ endpoints: { v3: endpoint('live', 'plain_0123456789abcdef') } })
    expect(await found(who, 'config')).toMatchObject({
      exitCode: 0,
      findings: [{ level: 'ok' }, { level: 'warn', detail: expect.stringContaining('whsec_') }],
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

  it.each<[string, (file: string) => void]>([
    ['missing', (file) => rmSync(file)],
    ['empty', (file) => truncateSync(file)],
  ])(
    'fails where it is %s beside its log, which it leaves alone, and says what to do',
    async (_how, harm) => {
      const backups = temporaryFolder()
      const who = await patient({ backup: { folder: backups } })
      await who.db.destroy()
      harm(who.file)
      const log = `${who.file}-wal`
      writeFileSync(log, 'what it alone holds', { mode: 0o600 })
      const detail = `${who.file} is missing or empty, though its log is there`
      const todo = (how: string) =>
        `put the database back, or a backup in its place (${how}); to begin anew, move the log away`
      expect(await found(who, 'database')).toEqual({
        exitCode: 1,
        findings: [{ level: 'fail', what: 'database', detail, todo: todo('`latchkey restore`') }],
      })
      for (const age of [2 * HOUR, HOUR]) writeFileSync(backupFileAt(backups, NOW - age), '')
      const newest = `the newest: \`latchkey restore ${backupFileAt(backups, NOW - HOUR)}\``
      expect((await found(who, 'database')).findings).toMatchObject([{ todo: todo(newest) }])
      expect(readFileSync(log, 'utf8')).toBe('what it alone holds')
    },
  )

  it('fails where its folder is a file', async () => {
    const config = writeConfig({ database: { url: `sqlite:${writeConfig('')}/latchkey.db` } })
    expect(await found({ config }, 'database')).toMatchObject({ exitCode: 1, findings: [{ level: 'fail' }] })
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
    expect(out).toContain(`the mode of ${file} can’t be read, `)
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

it('the disk is told by what is free and used', async () => {
  const [finding] = (await found(await patient(), 'disk')).findings
  expect(finding?.detail).toMatch(/^\S+ .?B free, \S+ .?B used$/)
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
    const hourly = Array.from({ length: 10 * 24 }, (_, n) => arrived(NOW - (242 - n) * HOUR))
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

  it.each([
    [false, 'interrupted, 7 of 9 events done', 'go on with it: `latchkey rebuild`'],
    [
      true,
      'interrupted while sources moved to the policy in force, 7 of 9 events done',
      'go on with it: `latchkey rebuild`; a daemon goes on when it starts',
    ],
  ])(
    'says how to go on with a rebuild that was interrupted (to another policy: %s)',
    async (isMoving, detail, todo) => {
      const who = await patient()
      await who.db.transaction().execute((trx) =>
        saveJob(trx, {
          scope: ['live', 'sandbox'],
          endpoints: null,
          policy: DOCUMENTED_POLICY,
          isMoving,
          normalizerVersion: 1,
          newest: 9,
          reached: 7,
          counts: NOTHING_READ,
          changesAfter: 0,
        }),
      )
      expect((await found(who, 'rebuild')).findings).toMatchObject([{ level: 'warn', detail, todo }])
    },
  )

  it.each([
    [null, 'warn', 0],
    [HOUR, 'ok', 0],
    [2 * DAY, 'fail', 1],
  ])('a newest backup of an age of %s ms, where one is due every day', async (age, level, exitCode) => {
    const folder = dirname(temporaryFile())
    const who = await patient({ backup: { folder } })
    mkdirSync(folder, { mode: 0o700 })
    if (age !== null) writeFileSync(backupFileAt(folder, NOW - age), '')
    expect(await found(who, 'backup')).toMatchObject({ exitCode, findings: [{ level }] })
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

  it('says that no backups are made where none are configured, which is nobody’s fault', async () => {
    const detail = 'none are scheduled; `latchkey backup` makes one'
    expect((await found(await patient(), 'backup')).findings).toEqual([
      { level: 'ok', what: 'backup', detail, todo: null },
    ])
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
