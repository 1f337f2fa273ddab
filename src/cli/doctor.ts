import type { Config } from '../config/schema.js'
import type { ExaminedDaemon } from '../doctor/examine.js'
import { counted, type Finding, fail, warn } from '../doctor/finding.js'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { socketFileOf } from '../handlers/api-key.js'
import type { DoctorJson } from '../handlers/health.js'
import { AS_ITS_USER, isOfAnotherUser, refusalText } from '../system-refusal.js'
import type { ApiOptions } from './api.js'
import { command, DAEMON, flag, jsonLine } from './command.js'
import { type CliContext, loadNamedConfig } from './context.js'
import { findingLine, paintFor } from './text.js'

/** `latchkey doctor`: what is wrong, and what to do about it. Exits 1 for failures, but not for warnings. */
export const doctorCommand = command('doctor', {
  about: 'check everything, and say what to do; with or without a running daemon',
  examples: ['doctor', 'doctor --thorough --json'],
  options: {
    ...DAEMON,
    thorough: flag('also compare every index with its table, and every body with its hash; takes longer'),
  },
  async run({ options, context }) {
    const findings: Finding[] = []
    const paint = paintFor(context)
    for await (const finding of findingsOf(options, options.thorough ?? false, context)) {
      findings.push(finding)
      if (!options.json) context.out(findingLine(finding, paint))
    }
    const failed = findings.filter(({ level }) => level === 'fail').length
    if (options.json) context.out(jsonLine({ ok: failed === 0, findings }))
    if (failed > 0) throw new LatchkeyError('checks_failed', `${counted(failed, 'check')} failed`)
  },
})

/** The daemon's findings; or, if none answers, findings made here, with the database opened read-only. */
async function* findingsOf(options: ApiOptions, thorough: boolean, context: CliContext) {
  const { isListening, localApi, withApi } = await import('./find-api.js')
  if (options.url !== undefined) {
    yield* (await withApi(options, context, (api) => api.get<DoctorJson>('/doctor', { thorough }))).findings
    return
  }
  const loaded = await loadNamedConfig(options, context)
  const { config } = loaded
  const { checkConfig, examine } = await import('../doctor/examine.js')
  let daemon: ExaminedDaemon
  try {
    if (await isListening(socketFileOf(config.database.file))) {
      const { findings } = await localApi(config).get<DoctorJson>('/doctor', { thorough })
      // The daemon may have read an older config file, and has its own environment variables.
      yield* checkConfig(loaded)
      yield* findings.filter(({ what }) => what !== 'config')
      return
    }
    daemon = await withoutAnswer(config)
  } catch (error) {
    daemon = { finding: unansweredBy(error, config), facts: null, isServed: true, isRebuilding: false }
  }
  const { storedSync } = await import('../daemon/stored-sync.js')
  const { syncStateJson } = await import('../handlers/sync.js')
  yield* examine({
    ...loaded,
    thorough,
    clock: context.now,
    daemon,
    syncOf: async (db) => syncStateJson(await storedSync(db, config, context.now).status()),
  })
}

/** @throws errors other than those of an unreachable or failing daemon */
function unansweredBy(error: unknown, { database }: Config): Finding {
  if (!isLatchkeyError(error)) throw error
  if (isOfAnotherUser(error.cause)) {
    const detail = `can’t tell whether a daemon is running: ${socketFileOf(database.file)}, ${refusalText(error.cause)}`
    return fail('daemon', detail, AS_ITS_USER)
  }
  return fail('daemon', error.message, 'see its log')
}

async function withoutAnswer({ database: { file } }: Config): Promise<ExaminedDaemon> {
  const { isStoreServed } = await import('../store/sqlite/file.js')
  const unknown = 'refused deliveries and the sender’s clock are not known'
  const isServed = isStoreServed(file)
  const finding = isServed
    ? warn(
        'daemon',
        `a process has the database open, but none answers at ${socketFileOf(file)}, so ${unknown}`,
        'wait for the command that uses it, or see the daemon’s log',
      )
    : warn('daemon', `not running, so ${unknown}`, 'start it: `latchkey serve`')
  return { finding, facts: null, isServed, isRebuilding: false }
}
