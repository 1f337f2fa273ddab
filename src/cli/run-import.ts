import { resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import { type Issue, isLatchkeyError, LatchkeyError } from '../errors.js'
import { type ImportJson, LINES_TYPE } from '../handlers/imports.js'
import type { LineOutcome } from '../history/import.js'
import type { RefusedLine } from '../history/line.js'
import type { Environment } from '../provider/event.js'
import { type DaemonOptions, jsonLine, loadNamedConfig } from './command.js'
import type { CliContext } from './context.js'
import { type AskDaemon, daemonAt, localDaemon } from './daemon-client.js'
import {
  type ImportInput,
  importBatches,
  MAX_LINE_BYTES,
  type NumberedLine,
  openImportInput,
} from './import-input.js'

/** A store that can't take lines now is tried again this often: long enough for a checkpoint, or a start. */
const ATTEMPTS = 10
const WAIT_MS = 1_000

/** Enough to see what is wrong with a file: there could be as many as it has lines. */
const REFUSALS_SHOWN = 20

export interface ImportOptions extends DaemonOptions {
  readonly environment?: Environment
  readonly withManual?: true
  readonly dryRun?: true
}

/** Where lines go: a daemon, or the store if none runs. */
interface ImportTarget {
  /** What became of each, in their order. */
  importLines(lines: readonly string[]): Promise<readonly LineOutcome[]>
  close(): Promise<void>
}

/**
 * Imports a file, or standard input, and says what became of its lines, also of those before a failure.
 * @throws {LatchkeyError} `lines_refused` at the end; `input_failed`
 */
export async function runImport(
  file: string,
  stdin: () => Readable,
  options: ImportOptions,
  context: CliContext,
): Promise<void> {
  const path = file === '-' ? file : resolve(context.folder, file)
  const tally = createTally()
  try {
    await importAll(openImportInput(path, stdin), tally, options, context)
  } catch (error) {
    if (tally.lines() === 0) throw error
    if (options.json) context.out(jsonLine(tally.json()))
    else context.err(`stopped after ${tally.text()}`)
    if (!isLatchkeyError(error, 'input_failed')) throw error
    // What is wrong with the input undoes nothing of what was read before.
    const done = options.dryRun ? 'checked' : 'taken in'
    const { cause } = error
    throw new LatchkeyError('input_failed', `${error.message}; the lines before that are ${done}`, { cause })
  }
  context.out(options.json ? jsonLine(tally.json()) : tally.text())
  tally.assertNoneRefused()
}

async function importAll(
  input: ImportInput,
  tally: Tally,
  options: ImportOptions,
  context: CliContext,
): Promise<void> {
  const { isTerminal, err } = context
  const share = () =>
    input.size ? `, ${Math.floor((100 * input.reached()) / input.size)} % of the file read` : ''
  const target = await openTarget(options, context)
  try {
    for await (const batch of importBatches(input.bytes)) {
      const texts = batch.flatMap(({ text }) => (text === null ? [] : [text]))
      const outcomes = (await patiently(() => target.importLines(texts))).values()
      for (const line of batch) {
        const outcome = line.text === null ? TOO_LONG : outcomes.next().value
        if (outcome !== undefined) tally.add(line, outcome)
      }
      if (isTerminal) err(`\r${tally.lines()} lines${share()}`)
    }
  } finally {
    if (isTerminal) err('\r\u001b[K')
    await target.close()
  }
}

/** The daemon that `--url` names, or the local one; if none runs, the store itself, whose lock is held meanwhile. */
async function openTarget(options: ImportOptions, context: CliContext): Promise<ImportTarget> {
  if (options.url !== undefined) return toDaemon(daemonAt(options.url, context), options)
  const { config } = await loadNamedConfig(options, context)
  const target = toDaemon(localDaemon(config), options)
  try {
    // No lines, to find out whether a daemon answers.
    await patiently(() => target.importLines([]))
    return target
  } catch (error) {
    if (!isLatchkeyError(error, 'daemon_unreachable')) throw error
    const { storeAsTarget } = await import('./import-here.js')
    const { environment, withManual, dryRun } = options
    const environments = environment === undefined ? (['live', 'sandbox'] as const) : [environment]
    const rules = { environments, withManual: withManual === true }
    return storeAsTarget(rules, dryRun === true, { config, now: context.now })
  }
}

function toDaemon(ask: AskDaemon, { environment, withManual, dryRun }: ImportOptions): ImportTarget {
  const query = new URLSearchParams({
    withManual: String(withManual === true),
    dryRun: String(dryRun === true),
    ...(environment === undefined ? {} : { environment }),
  })
  return {
    async importLines(lines) {
      const content = { type: LINES_TYPE, text: lines.join('\n') }
      return ((await ask({ method: 'POST', path: `/imports?${query}`, content })) as ImportJson).results
    },
    close: async () => {},
  }
}

/** Sending lines again is safe: what is stored already is recognised. */
async function patiently<Answer>(attempt: () => Promise<Answer>): Promise<Answer> {
  for (let left = ATTEMPTS - 1; ; left -= 1) {
    try {
      return await attempt()
    } catch (error) {
      if (left === 0 || !isLatchkeyError(error, 'not_stored')) throw error
      await wait(WAIT_MS)
    }
  }
}

/** What becomes of a line that is never sent. */
const TOO_LONG: RefusedLine = {
  outcome: 'refused',
  reason: 'line_too_long',
  detail: `it has more than ${MAX_LINE_BYTES} bytes`,
}

const LEFT_OUT =
  'left out is what nobody signed, done by hand or told as it was read: --with-manual takes it\n'

type Tally = ReturnType<typeof createTally>

/** What became of all lines so far. */
function createTally() {
  const counts = {
    applied: 0,
    ignored: 0,
    held: 0,
    quarantined: 0,
    duplicate: 0,
    left_out: 0,
    checked: 0,
    refused: 0,
  } satisfies Record<LineOutcome['outcome'], number>
  const refusals: (Pick<RefusedLine, 'reason' | 'detail'> & { readonly line: number })[] = []
  const lines = () => Object.values(counts).reduce((sum, count) => sum + count, 0)

  return {
    lines,
    add({ number: line }: NumberedLine, result: LineOutcome): void {
      counts[result.outcome] += 1
      if (result.outcome !== 'refused' || refusals.length >= REFUSALS_SHOWN) return
      refusals.push({ line, reason: result.reason, detail: result.detail })
    },
    json(): object {
      const { duplicate: duplicates, left_out: leftOut, ...others } = counts
      return { lines: lines(), ...others, duplicates, leftOut, refusals }
    },
    text(): string {
      const parts = Object.entries(counts)
        .filter(([, count]) => count > 0)
        .map(([outcome, count]) => `${count} ${outcome.replace('_', ' ')}`)
      const all = `${lines()} ${lines() === 1 ? 'line' : 'lines'}`
      return `${[all, ...parts].join(', ')}\n${counts.left_out > 0 ? LEFT_OUT : ''}`
    },
    /** @throws {LatchkeyError} `lines_refused`, with the first refused lines */
    assertNoneRefused(): void {
      if (counts.refused === 0) return
      const refused = counts.refused === 1 ? 'one line was' : `${counts.refused} lines were`
      const issues = refusals.map(
        ({ line, reason, detail }): Issue => ({ path: `line ${line}`, message: `${reason}: ${detail}` }),
      )
      throw new LatchkeyError('lines_refused', `${refused} refused; all others were gone through`, { issues })
    },
  }
}
