import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import type { Transaction } from 'kysely'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MIGRATIONS } from '../../migrations/index.js'
import type { Finding } from '../../src/doctor/finding.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import type { Delivery } from '../../src/ingest/delivery.js'
import { backupFileAt } from '../../src/operations/backup-folder.js'
import { migrate } from '../../src/store/migrate.js'
import { NOTHING_READ, saveJob } from '../../src/store/recompute.js'
import type { Database } from '../../src/store/schema.js'
import { savePolicy } from '../../src/store/settings.js'
import { lockStore } from '../../src/store/sqlite/file.js'
import { endpoint } from '../config/config-file.js'
import { overwritePages, rootPage } from '../faults/pages.js'
import { deliveryOf } from '../ingest/wire.js'
import { alterBody } from '../setup/alter-body.js'
import { customerStory, deliver, eventsOf, send, sentEvent, storiesOf } from '../stories.js'
import {
  configuredFolder,
  databaseIn,
  onStore,
  rewriteConfig,
  run,
  runServed,
  serveHere,
  takeIn,
  temporaryFolder,
} from '../world.js'

const NOW = Date.parse('2026-03-20T12:00:00Z')
const HOUR = 3_600_000
const DAY = 24 * HOUR

const CONFIG = { endpoints: { v3: endpoint('live', 'whsec_v3_0123456789abcdef') } }

/** A stopped store of the newest schema, and a config that only its owner may read. */
async function patient(told: object = {}, incoming: readonly Delivery[] = []): Promise<string> {
  const folder = configuredFolder({ ...CONFIG, ...told })
  chmodSync(join(folder, 'config.json'), 0o600)
  await takeIn(folder, incoming, () => NOW)
  return folder
}

const doctor = (folder: string, options = '', now = () => NOW) => run(folder, `doctor ${options}`, { now })

/** What was found of one thing, and the exit code. */
async function found(folder: string, what: string, now = () => NOW) {
  const { code, stdout } = await doctor(folder, '--json', now)
  const { findings } = JSON.parse(stdout) as { findings: readonly Finding[] }
  return { code, findings: findings.filter((finding) => finding.what === what) }
}

const linesNotOk = (stdout: string) =>
  stdout
    .trimEnd()
    .split('\n')
    .filter((line) => !line.startsWith('ok '))

/** An event that happened, and arrived, at some time. */
function arrived(receivedAt: number, { createdAt = receivedAt, customer = 'cus_1', ...told } = {}): Delivery {
  const data = { object: 'payment', id: 'pay_1', method: 'CARD', product: { id: 'pro_1' } }
  const whose = customer === '' ? {} : { customer: { id: customer } }
  const { body } = sentEvent(`evt_${receivedAt}`, 'payment.authorized', createdAt, { ...data, ...whose })
  return deliveryOf(body, { receivedAt, ...told })
}

describe('latchkey doctor', () => {
  it('tells each thing on a line of its own, and exits 0 where nothing fails', async () => {
    const { code, stdout, stderr } = await doctor(await patient())
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const notRunning = expect.stringMatching(/^warn {2}daemon +not running, .*: start it: `latchkey serve`$/)
    expect(linesNotOk(stdout)).toEqual([notRunning])
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.slice(6, 24).trim()),
    ).toEqual([
      ...['config', 'files', 'daemon', 'endpoint v3', 'keys', 'schema', 'integrity', 'log', 'disk', 'clock'],
      ...[
        'deliveries v3',
        'held',
        'quarantined',
        'conflicts',
        'policy',
        'erasures',
        'bodies',
        'backup',
        'sync',
      ],
    ])
  })

  it('exits 1 where something fails, after all lines', async () => {
    const folder = await patient()
    chmodSync(folder, 0o755)
    chmodSync(join(folder, 'data'), 0o755)
    chmodSync(databaseIn(folder), 0o644)
    const { code, stdout, stderr } = await doctor(folder)
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'error: 1 check failed\n' })
    const others = `others can open ${databaseIn(folder)}, with the mode 0644: chmod 600 `
    expect(stdout).toContain(`FAIL  files               ${others}`)
    expect(stdout).toMatch(/\nok {4}sync /)
  })

  it('finds nothing to do beside a running daemon, whom it asks what was refused, and whose clock was off', async () => {
    const folder = configuredFolder()
    chmodSync(join(folder, 'config.json'), 0o600)
    const daemon = await serveHere(folder)
    const [event] = customerStory(0).events
    await deliver(daemon.url, customerStory(0).events)
    const { code, stdout, stderr } = await run(folder, 'doctor')
    expect({ code, stderr, notOk: linesNotOk(stdout) }).toEqual({ code: 0, stderr: '', notOk: [] })
    expect(stdout).toMatch(/\nok {4}daemon +running since 20/)
    expect(stdout).toMatch(/\nok {4}deliveries live +last at 20\S+Z, (usually every \S+, )?now \S+ ago\n/)
    if (event === undefined) throw new Error('there is no event')
    expect(await send(daemon.url, event, { secret: 'whsec_other' })).toMatchObject({ status: 401 })
    expect(await send(daemon.url, event, { at: Date.now() - 4_000_000 })).toMatchObject({ status: 401 })
    expect(await found(folder, 'refused live', Date.now)).toMatchObject({
      findings: [{ level: 'warn', detail: '1 signature_invalid, 1 timestamp_out_of_tolerance' }],
    })
    const behind = expect.stringMatching(/^a delivery to live was refused: .* 1h 6m behind ours$/)
    expect(await found(folder, 'clock', Date.now)).toMatchObject({
      findings: [{ level: 'ok' }, { level: 'warn', detail: behind }],
    })
  })

  it('compares every body with its hash where it is to be thorough, and changes no byte', async () => {
    const folder = configuredFolder()
    const daemon = await serveHere(folder)
    await deliver(daemon.url, eventsOf(storiesOf(0, 20)))
    await daemon.stop()
    for (const id of ['evt_7_paid', 'evt_3_paid']) await onStore(folder, (db) => alterBody(db, id, '{}'))
    const before = readFileSync(databaseIn(folder))
    expect(await run(folder, 'doctor')).toMatchObject({ code: 0 })
    const { code, stdout, stderr } = await run(folder, 'doctor --thorough')
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'error: 1 check failed\n' })
    expect(stdout).toMatch(
      /^FAIL {2}body hashes +2 of 50 altered in the database, the first that of evt_\d_paid in live: .*`latchkey restore`/m,
    )
    expect(readFileSync(databaseIn(folder)).equals(before)).toBe(true)
    const replay = await runServed(folder, 'replay')
    expect(replay.stdout).toMatch(/^48 read again, 0 were read differently\n2 kept as stored: .* altered /)
  })

  it.each(['events', 'sqlite_schema'])(
    'fails where a page of %s is damaged, and looks at the rest',
    async (name) => {
      const folder = await patient({}, [arrived(NOW - HOUR)])
      overwritePages(databaseIn(folder), rootPage(databaseIn(folder), name))
      const { code, stdout, stderr } = await doctor(folder)
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringMatching(/^error: \d+ checks? failed\n$/),
      })
      const todo = 'stop the daemon, and restore a backup: `latchkey restore`'
      expect(stdout).toMatch(new RegExp(`^FAIL {2}integrity .*: ${todo}$`, 'm'))
      expect(stdout).toMatch(/\nok {4}sync +no targets configured\n$/)
    },
  )
})

describe('a database', () => {
  it('that is missing or empty beside its log is told with what to do, and the log is left alone', async () => {
    for (const harm of [rmSync, truncateSync]) {
      const backups = temporaryFolder()
      const folder = await patient({ backup: { folder: backups } })
      harm(databaseIn(folder))
      const log = `${databaseIn(folder)}-wal`
      writeFileSync(log, 'what it alone holds', { mode: 0o600 })
      const detail = `${databaseIn(folder)} is missing or empty, but its write-ahead log is there`
      const todo = (how: string) =>
        `put the database back, or replace it with a backup (${how}); to start over, move the log away`
      expect(await found(folder, 'database')).toEqual({
        code: 1,
        findings: [{ level: 'fail', what: 'database', detail, todo: todo('`latchkey restore`') }],
      })
      for (const age of [2 * HOUR, HOUR]) writeFileSync(backupFileAt(backups, NOW - age), '')
      const newest = todo(`the newest: \`latchkey restore ${backupFileAt(backups, NOW - HOUR)}\``)
      expect((await found(folder, 'database')).findings).toMatchObject([{ todo: newest }])
      expect(readFileSync(log, 'utf8')).toBe('what it alone holds')
    }
  })

  it('that the system lets nobody look at fails, and the rest is looked at', async () => {
    const folder = configuredFolder({})
    mkdirSync(join(folder, 'data'), { mode: 0o700 })
    // A link to itself: like a folder that may not be entered, it is no proof that nothing is there.
    symlinkSync(basename(databaseIn(folder)), databaseIn(folder))
    const { code, stdout, stderr } = await doctor(folder)
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^error: \d checks failed\n$/),
    })
    expect(stdout).toContain(`the mode of ${databaseIn(folder)} can’t be read, `)
    expect(stdout).toMatch(/\nFAIL {2}database .* can’t be read, .* \(ELOOP\): check database.url\n/)
    expect(stdout).toMatch(/\nok {4}sync /)
  })

  it.runIf(process.getuid?.() !== 0)('of another user fails, and the rest is looked at', async () => {
    const folder = await patient()
    chmodSync(join(folder, 'data'), 0)
    onTestFinished(() => chmodSync(join(folder, 'data'), 0o700))
    const { code, stdout } = await doctor(folder)
    expect(code).toBe(1)
    expect(stdout.match(/^FAIL .*: run this as the user that owns it$/gm)).toHaveLength(3)
    expect(stdout).toMatch(/\nok {4}sync /)
  })

  it('that is not there fails, and is not made', async () => {
    const folder = configuredFolder({})
    expect(await found(folder, 'database')).toMatchObject({ code: 1, findings: [{ level: 'fail' }] })
    expect(existsSync(join(folder, 'data'))).toBe(false)
  })

  it('that another process works on is told from one that nobody has', async () => {
    const folder = await patient()
    const lock = lockStore(databaseIn(folder))
    const held = expect.stringMatching(/^a process has the database open/)
    expect(await found(folder, 'daemon')).toMatchObject({ findings: [{ level: 'warn', detail: held }] })
    lock.release()
    const nobody = expect.stringMatching(/^not running/)
    expect(await found(folder, 'daemon')).toMatchObject({ findings: [{ level: 'warn', detail: nobody }] })
  })
})

interface Case {
  readonly config?: object
  readonly incoming?: readonly Delivery[]
  readonly prepare?: (folder: string) => unknown
  readonly detail?: unknown
  readonly todo?: unknown
}

const ending = (...ends: readonly number[]) => {
  const secrets = ends.map((end, n) => ({
    secret: `whsec_${n}`,
    notAfter: new Date(NOW + end).toISOString(),
  }))
  return { endpoints: { v3: endpoint('live', ...secrets) } }
}
const live = expect.stringMatching(/^live, /)
const stepsIn = (folder: string, change: 'add' | 'remove' | number) =>
  onStore(folder, async (db) => {
    const steps = db.withTables<{ schema_migrations: { name: string; timestamp: string } }>()
    if (change === 'remove') await steps.deleteFrom('schema_migrations').where('name', '>', '0004').execute()
    if (typeof change === 'number') {
      const timestamp = new Date(change).toISOString()
      await steps.updateTable('schema_migrations').set({ timestamp }).execute()
    }
    if (change === 'add')
      await migrate(db, [...MIGRATIONS, { name: '9999-of-tomorrow', create: () => ({ up: async () => {} }) }])
  })
const inStore = (folder: string, work: (trx: Transaction<Database>) => Promise<unknown>) =>
  onStore(folder, (db) => db.transaction().execute(work))
const JOB = {
  scope: ['live', 'sandbox'],
  endpoints: null,
  policy: DOCUMENTED_POLICY,
  normalizerVersion: 1,
} as const
const saveRebuild = (isMoving: boolean) => (folder: string) =>
  inStore(folder, (trx) =>
    saveJob(trx, { ...JOB, isMoving, newest: 9, reached: 7, counts: NOTHING_READ, changesAfter: 0 }),
  )
const growLog = (folder: string) => {
  writeFileSync(`${databaseIn(folder)}-wal`, '', { mode: 0o600 })
  truncateSync(`${databaseIn(folder)}-wal`, 300 * 1024 * 1024)
}
const BACKUPS = { backup: { folder: 'backups' } }
const NIGHTLY = { backup: { folder: 'backups', schedule: '0 0 * * *' } }
/** Midnight before. */
const DAY_OF_NOW = Math.floor(NOW / DAY) * DAY
const backupMade = (age: number) => (folder: string) => {
  mkdirSync(join(folder, 'backups'), { mode: 0o700 })
  writeFileSync(backupFileAt(join(folder, 'backups'), NOW - age), '')
}

const containing = (text: string) => expect.stringContaining(text)
const INTERRUPTED = 'interrupted, 7 of 9 events done'
const MOVING = 'interrupted while sources moved to the policy in force, 7 of 9 events done'
const TARGETS = [{ adapter: 'telegram', groupId: '-1001', environment: 'live' }]
const held = (...ages: readonly number[]) => ages.map((age) => arrived(NOW - age, { customer: '' }))

/** What the doctor looks at, what it finds of it, and where. */
const CASES: Readonly<Record<string, Case>> = {
  'database fail: its folder is a file': { config: { database: { url: 'sqlite:config.json/latchkey.db' } } },
  'integrity fail: the database is none': {
    prepare: (folder) => writeFileSync(databaseIn(folder), 'no database at all'.repeat(100)),
    todo: 'stop the daemon, and restore a backup: `latchkey restore`',
  },
  'schema fail: a newer program wrote it': {
    prepare: (folder) => stepsIn(folder, 'add'),
    detail: containing('9999-of-tomorrow'),
  },
  'schema warn: it is older than the program': { prepare: (folder) => stepsIn(folder, 'remove') },
  'log warn: something holds it open': { prepare: growLog, detail: 'the write-ahead log is 300 MB' },
  'endpoint v3 fail: no secret counts any more': { config: ending(-DAY, 0), detail: live },
  'endpoint v3 warn: the last secret ends soon': { config: ending(-DAY, 13 * DAY), detail: live },
  'endpoint v3 ok: all secrets last': { config: ending(15 * DAY, 365 * DAY), detail: live },
  // It may be to prove an import still, for which it has to stay in the config.
  'endpoint v3 ok: one secret has ended': {
    config: ending(-DAY, 365 * DAY),
    detail: 'live, 1 of 2 secrets has expired, but still verifies imports',
    todo: null,
  },
  'endpoint v3 ok: two secrets have ended': {
    config: ending(-DAY, 0, 365 * DAY),
    detail: 'live, 2 of 3 secrets have expired, but still verify imports',
  },
  'deliveries v3 ok: they come as usual': {
    incoming: [3, 2, 1].map((hours) => arrived(NOW - hours * HOUR)),
    detail: 'last at 2026-03-20T11:00:00.000Z, usually every 1h, now 1h ago',
    todo: null,
  },
  'deliveries v3 warn: a silence is unusually long': {
    incoming: Array.from({ length: 240 }, (_, n) => arrived(NOW - (242 - n) * HOUR)),
    detail: expect.stringMatching(/now 3h ago, unusually long$/),
  },
  'clock fail: an event arrived later than now': { incoming: [arrived(NOW + 120_000, { createdAt: NOW })] },
  'clock warn: an event happened well after now': { incoming: [arrived(NOW, { createdAt: NOW + 360_000 })] },
  'clock ok: the sender’s may be moved ahead': {
    config: { endpoints: { v3: { ...endpoint('sandbox', 'whsec_v3_0123456789abcdef'), aheadAtMost: '1y' } } },
    incoming: [arrived(NOW, { createdAt: NOW + 300 * DAY })],
  },
  'clock ok: the sender’s runs ahead a little': { incoming: [arrived(NOW, { createdAt: NOW + 240_000 })] },
  'quarantined warn: there are some': {
    incoming: ['{', '['].map((body) => deliveryOf(body, { receivedAt: NOW - HOUR })),
    detail: '2 events: live 2 not_json',
    todo: 'see `latchkey events list --disposition quarantined --environment live`',
  },
  'held ok: some wait for less than a day': { incoming: held(HOUR) },
  'held warn: some wait for longer': {
    incoming: held(HOUR, DAY + 1),
    detail: '2 events: live 2 customer_unknown, some for more than a day',
  },
  'conflicts warn: an id came with another body': {
    incoming: ['cus_1', 'cus_2'].map((customer) => arrived(NOW - HOUR, { customer })),
    detail: expect.stringMatching(
      /^1 other body arrived with ids of stored events; the stored ones are kept: evt_\w+ in live$/,
    ),
    todo: containing('`latchkey events list --conflicts`'),
  },
  'policy warn: the configured one is not in force': {
    config: { policy: { canceled: 'period_end' } },
    prepare: (folder) => inStore(folder, (trx) => savePolicy(trx, DOCUMENTED_POLICY)),
    todo: containing('`latchkey policy diff`'),
  },
  'rebuild warn: one was interrupted': {
    prepare: saveRebuild(false),
    detail: INTERRUPTED,
    todo: 'continue it with `latchkey rebuild`',
  },
  'rebuild warn: a policy was not applied to all': {
    prepare: saveRebuild(true),
    detail: MOVING,
    todo: 'continue it with `latchkey rebuild`; the daemon continues it when it starts',
  },
  'backup ok: none are scheduled': {
    detail: 'none are scheduled; `latchkey backup` creates one',
    todo: null,
  },
  'backup warn: none was made yet': { config: BACKUPS },
  'backup ok: the newest is new enough': { config: BACKUPS, prepare: backupMade(HOUR) },
  'backup fail: the newest is too old': { config: BACKUPS, prepare: backupMade(2 * DAY) },
  'backup ok: its next time is to come': {
    config: NIGHTLY,
    prepare: (folder) => backupMade((NOW - DAY_OF_NOW) % DAY)(folder),
    detail: containing('one is due at the times of "0 0 * * *" (UTC)'),
  },
  'backup fail: its time has passed for long': {
    config: NIGHTLY,
    prepare: (folder) => backupMade(NOW - DAY_OF_NOW + 1)(folder),
    detail: containing('one is due at the times of "0 0 * * *" (UTC)'),
  },
  'backup fail: none can be made': {
    config: { backup: { folder: 'config.json' } },
    detail: expect.stringMatching(/^none can be made: ENOTDIR.*config\.json/),
    todo: containing('backup.folder'),
  },
  'sync ok: targets are settled': {
    config: { products: { pro_1: { targets: TARGETS } }, sync: { telegram: { botToken: 't' } } },
    detail: '1 target, 0 settled, 0 under way',
  },
  'disk ok: the database is younger than a day': {
    incoming: [arrived(NOW - 3 * DAY), arrived(NOW - HOUR)],
    prepare: (folder) => stepsIn(folder, NOW - DAY + 1),
    detail: expect.stringMatching(/ free, \S+ .?B used$/),
  },
}

describe('the doctor finds', () => {
  it.each(Object.entries(CASES))('%s', async (name, { config = {}, incoming, prepare, ...said }) => {
    const [, what = '', level] = /^(.+) (ok|warn|fail): /.exec(name) ?? []
    const folder = await patient({}, incoming)
    rewriteConfig(folder, { ...CONFIG, ...config })
    await prepare?.(folder)
    const { code, findings } = await found(folder, what)
    expect({ code, findings }).toMatchObject({
      code: level === 'fail' ? 1 : 0,
      findings: [{ level, ...said }],
    })
  })

  it('what is seldom meant in the config, and nothing in a store that a newer program wrote', async () => {
    const folder = await patient({ endpoints: { v3: endpoint('live', 'plain_0123456789abcdef') } })
    expect(await found(folder, 'config')).toMatchObject({
      code: 0,
      findings: [{ level: 'ok' }, { level: 'warn', detail: containing('whsec_') }],
    })
    await stepsIn(folder, 'add')
    expect(await found(folder, 'quarantined')).toEqual({ code: 1, findings: [] })
  })
})
