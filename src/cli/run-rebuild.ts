import { setTimeout as wait } from 'node:timers/promises'
import { LatchkeyError } from '../errors.js'
import type { RebuildJson, SummaryJson } from '../handlers/rebuild-json.js'
import type { Environment } from '../provider/event.js'
import { type DaemonOptions, loadNamedConfig } from './command.js'
import type { CliContext } from './context.js'
import { throughDaemon } from './daemon-client.js'
import type { RebuildReporting, RebuildUnder } from './recompute-here.js'

const ASK_EVERY_MS = 200

/**
 * Has the running daemon rebuild the state, or does so where none runs; shows progress to a person.
 * @param only the environment whose changes are reported; undefined: both
 */
export async function runRebuild(
  under: RebuildUnder,
  options: DaemonOptions,
  context: CliContext,
  only?: Environment,
): Promise<SummaryJson> {
  const progress = createProgress(context)
  const path = under === 'configured' ? `/policy/apply${await expectation(options, context)}` : '/rebuild'
  try {
    const started = await throughDaemon(options, context, { method: 'POST', path }, async (config) => {
      const { rebuildHere } = await import('./recompute-here.js')
      return rebuildHere(under, config, context, { show: progress.show, only })
    })
    return await follow(started as RebuildJson, options, context, { show: progress.show, only })
  } finally {
    progress.clear()
  }
}

/** The daemon at an address has a config of its own; the local one should have read the one that is read here. */
async function expectation(options: DaemonOptions, context: CliContext): Promise<string> {
  if (options.url !== undefined) return ''
  const { policyFingerprint } = await import('../store/policy.js')
  const { config } = await loadNamedConfig(options, context)
  return `?expect=${policyFingerprint(config.policy)}`
}

/** Asks how the rebuild stands until it has ended. */
async function follow(
  started: RebuildJson,
  options: DaemonOptions,
  context: CliContext,
  { show, only }: RebuildReporting,
): Promise<SummaryJson> {
  let status = started
  while (status.state === 'running') {
    show(status.folded, status.total)
    await wait(ASK_EVERY_MS)
    status = (await throughDaemon(
      options,
      context,
      { method: 'GET', path: only === undefined ? '/rebuild' : `/rebuild?environment=${only}` },
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

/** One line that overwrites itself; nothing where no person looks. */
function createProgress({ isTerminal, err }: CliContext): {
  show: RebuildReporting['show']
  clear: () => void
} {
  if (!isTerminal) return { show: () => {}, clear: () => {} }
  return {
    show: (folded, total) => err(`\r${folded} of ${Math.max(folded, total)} events`),
    clear: () => err('\r\u001b[K'),
  }
}
