import { existsSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import type { Config } from '../config/types.js'
import type { Policy } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import { type RebuildJson, rebuildJson, type SummaryJson } from '../handlers/rebuild-json.js'
import { openWriter } from '../ingest/writer.js'
import { policyFingerprint, policyInForce } from '../store/policy.js'
import { openStore } from '../store/store.js'
import { loadNamedConfig } from './command.js'
import type { CliContext } from './context.js'
import { type ChangeOptions, throughDaemon } from './daemon-client.js'

const ASK_EVERY_MS = 200

/** `configured`: from then on the configured policy is in force. `in force`: it stays the one it is. */
export type RebuildUnder = 'configured' | 'in force'

/** Has the running daemon rebuild the state, or does so where none runs; shows progress to a person. */
export async function runRebuild(
  under: RebuildUnder,
  options: ChangeOptions,
  context: CliContext,
): Promise<SummaryJson> {
  const progress = createProgress(context)
  const path = under === 'configured' ? `/policy/apply${expectation(options, context)}` : '/rebuild'
  try {
    const started = await throughDaemon(options, context, { method: 'POST', path }, (config) =>
      rebuildHere(under, config, context, progress.show),
    )
    return await follow(started as RebuildJson, options, context, progress.show)
  } finally {
    progress.clear()
  }
}

/** The daemon at an address has a config of its own; the local one should have read the one that is read here. */
function expectation(options: ChangeOptions, context: CliContext): string {
  if (options.url !== undefined) return ''
  return `?expect=${policyFingerprint(loadNamedConfig(options, context).config.policy)}`
}

type Show = (folded: number, total: number) => void

/** Asks how the rebuild stands until it has ended. */
async function follow(
  started: RebuildJson,
  options: ChangeOptions,
  context: CliContext,
  show: Show,
): Promise<SummaryJson> {
  let status = started
  while (status.state === 'running') {
    show(status.folded, status.total)
    await wait(ASK_EVERY_MS)
    status = (await throughDaemon(
      options,
      context,
      { method: 'GET', path: '/rebuild' },
      goneMeanwhile,
    )) as RebuildJson
  }
  if (status.state === 'done') {
    const { gains, losses, otherwise, sample } = status
    return { gains, losses, otherwise, sample }
  }
  const reason = status.state === 'failed' ? status.reason : 'The daemon was started anew meanwhile.'
  throw new LatchkeyError('rebuild_failed', `the rebuild has not ended: ${reason}`)
}

async function goneMeanwhile(): Promise<never> {
  throw new LatchkeyError('rebuild_failed', 'the daemon has stopped: run it again, and the rebuild goes on')
}

/** Holds the store's lock meanwhile, so that no daemon starts. */
async function rebuildHere(
  under: RebuildUnder,
  { database: { file }, policy: configured }: Config,
  { now }: CliContext,
  show: Show,
): Promise<RebuildJson> {
  if (!existsSync(file)) throw new LatchkeyError('store_missing', `There is no database at ${file}.`)
  const store = await openStore(file, configured, now, (place) => openWriter(place, now))
  try {
    const policy: Policy = under === 'configured' ? configured : await policyInForce(store.reader)
    const summary = await store.writer.rebuild(policy, { onProgress: show })
    return rebuildJson({ state: 'done', summary })
  } finally {
    await store.close()
  }
}

/** One line that overwrites itself; nothing where no person looks. */
function createProgress({ isTerminal, err }: CliContext): { show: Show; clear: () => void } {
  if (!isTerminal) return { show: () => {}, clear: () => {} }
  return {
    show: (folded, total) => err(`\r${folded} of ${Math.max(folded, total)} sources`),
    clear: () => err('\r\u001b[K'),
  }
}
