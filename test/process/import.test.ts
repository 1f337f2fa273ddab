import { execFileSync } from 'node:child_process'
import { createWriteStream, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { exportLine } from '../../src/history/line.js'
import { signBody } from '../../src/provider/signature.js'
import { eventually } from '../setup/eventually.js'
import { latchkey, type ProgramExit, runProgram, startProgram } from '../setup/program.js'
import { runHere } from './in-process.js'
import { customerStory, deliver, type SentEvent } from './load.js'
import { API_KEY, CONFIG, configuredFolder, entitlementsOf, keyEntry, kill, SECRET, serve } from './served.js'
import { foldedAnew, foldedState, storedEvents } from './stored-state.js'

/** Of the text of an export: some tens of lines. */
const HELD_BACK = 20_000

const SIGNED_AT = Date.UTC(2025, 1, 1)

const command = (folder: string, ...args: readonly string[]): Promise<ProgramExit> =>
  runProgram(latchkey(...args), { folder })

function eventsOf(stories: number): readonly SentEvent[] {
  return Array.from({ length: stories }, (_, n) => customerStory(n)).flatMap(({ events }) => events)
}

/** An export of so many stories, signed long ago. */
function exportOf(stories: number): string {
  const lines = eventsOf(stories).map(({ body: text }, n) => {
    const body = Buffer.from(text)
    const timestamp = String(SIGNED_AT / 1000 + n)
    const headers = { event: null, timestamp, signature: signBody(SECRET, timestamp, body) }
    const receivedAt = SIGNED_AT + 1_000 * n
    return exportLine({ environment: 'live', endpoint: 'live', headers, body, receivedAt })
  })
  return lines.join('')
}

it.each([
  ['beside a running daemon', true],
  ['into the database of none', false],
])('takes over another store whole, acts by hand too, %s', async (_where, isServed) => {
  const source = configuredFolder()
  const daemon = await serve(source)
  await deliver(daemon.url, eventsOf(20))
  await runHere(source, ['grant', 'cus_1', 'pro_2', '--reason', 'support case 17'])
  await runHere(source, ['block', 'cus_2', '--reason', 'under review'])
  await command(source, 'events', 'export', '--output', 'events.jsonl')
  const file = join(source, 'events.jsonl')

  const folder = configuredFolder()
  const served = isServed ? await serve(folder) : null
  expect(await command(folder, 'import', file)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^52 lines, 50 applied, 2 left out\n/),
  })
  const rest = await command(folder, 'import', file, '--with-manual')
  expect(rest).toEqual({ code: 0, stdout: '52 lines, 2 applied, 50 duplicate\n', stderr: '' })
  expect(await foldedState(folder)).toEqual(await foldedState(source))
  const next = served ?? (await serve(folder))
  for (const customerId of ['cus_0', 'cus_1', 'cus_2', 'cus_3']) {
    expect(await entitlementsOf(next, customerId)).toEqual(await entitlementsOf(daemon, customerId))
  }
  const { stdout } = await runHere(folder, ['events', 'export'])
  expect(stdout).toBe((await runHere(source, ['events', 'export'])).stdout)
})

it('reads standard input, packed, and exits 1 for a line that it refuses', async () => {
  const folder = configuredFolder()
  writeFileSync(join(folder, 'events.gz'), gzipSync(`${exportOf(2)}nonsense\n`))
  const [node = '', program = ''] = latchkey()
  const script = `"${node}" "${program}" import - < events.gz`
  const { code, stdout, stderr } = await runProgram(['sh', '-c', script], { folder })
  expect({ code, stdout }).toEqual({ code: 1, stdout: '6 lines, 5 applied, 1 refused\n' })
  expect(stderr).toContain('line 6: line_invalid: is not JSON\n')
})

it('goes to the daemon that --url names, for a key with the scope', async () => {
  const keys = [
    { ...keyEntry('ops', API_KEY), scopes: ['read', 'admin'] },
    { ...keyEntry('app', 'lk_app_key'), scopes: ['read', 'write', 'events'] },
  ]
  const folder = configuredFolder({ ...CONFIG, api: { keys } })
  const daemon = await serve(folder)
  writeFileSync(join(folder, 'data', 'events.jsonl'), exportOf(2))
  const args = latchkey('import', 'events.jsonl', '--url', daemon.url, '--json')
  const elsewhere = join(folder, 'data')
  const refused = await runProgram(args, { folder: elsewhere, env: { LATCHKEY_API_KEY: 'lk_app_key' } })
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(JSON.parse(refused.stderr).error.code).toBe('forbidden')
  const done = await runProgram(args, { folder: elsewhere, env: { LATCHKEY_API_KEY: API_KEY } })
  expect(JSON.parse(done.stdout)).toMatchObject({ lines: 5, applied: 5, refused: 0 })
  const [line = ''] = exportOf(1).split('\n')
  const yetToCome = JSON.stringify({ ...JSON.parse(line), receivedAt: '9999-01-01T00:00:00.000Z' })
  writeFileSync(join(elsewhere, 'events.jsonl'), `${yetToCome}\n`)
  const early = await runProgram(args, { folder: elsewhere, env: { LATCHKEY_API_KEY: API_KEY } })
  expect(early.code).toBe(1)
  expect(JSON.parse(early.stdout)).toMatchObject({ refusals: [{ line: 1, reason: 'received_at_in_future' }] })
  expect(await entitlementsOf(daemon, 'cus_1')).toEqual([customerStory(1).outcome])
})

it.each([
  ['the command, beside a running daemon', true, 'command'],
  ['the command, where no daemon runs', false, 'command'],
  ['the daemon', true, 'daemon'],
])(
  'killed in the middle, %s, and done again, ends as if it was done once',
  async (_what, isServed, victim) => {
    const folder = configuredFolder()
    const lines = exportOf(400)
    writeFileSync(join(folder, 'events.jsonl'), lines)
    const total = lines.trimEnd().split('\n').length
    execFileSync('mkfifo', [join(folder, 'events.fifo')])
    // So that there is a database to look into.
    await runHere(folder, ['import', '/dev/null'])
    const daemon = isServed ? await serve(folder) : null
    const importing = startProgram(latchkey('import', 'events.fifo'), { folder })
    // The end is held back, so that it can't be done before it is killed; who reads may be gone by then.
    const feed = createWriteStream(join(folder, 'events.fifo')).on('error', () => {})
    feed.write(lines.slice(0, -HELD_BACK))
    await eventually(async () => expect(await storedEvents(folder)).not.toEqual([]), { intervalMs: 2 })
    if (victim === 'daemon' && daemon !== null) await kill(daemon)
    else importing.signal('SIGKILL')
    feed.end()
    expect((await importing.exit).code).toBe(victim === 'daemon' ? 1 : null)
    const taken = (await storedEvents(folder)).length
    expect(taken).toBeLessThan(total)
    if (victim === 'daemon') await serve(folder)

    const { code, stdout } = await command(folder, 'import', 'events.jsonl', '--json')
    expect(code).toBe(0)
    const told = JSON.parse(stdout)
    expect(told).toMatchObject({ lines: total, applied: total - told.duplicates })
    // A daemon goes on with the lines that the command had sent already when it was killed.
    if (isServed && victim === 'command') expect(told.duplicates).toBeGreaterThanOrEqual(taken)
    else expect(told.duplicates).toBe(taken)
    expect((await storedEvents(folder)).map(({ event_id }) => event_id)).toHaveLength(total)
    expect(await foldedState(folder)).toEqual(await foldedAnew(folder))
  },
)
