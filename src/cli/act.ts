import { type Command, InvalidArgumentError } from 'commander'
import type { Config } from '../config/types.js'
import { systemUser } from '../handlers/local-access.js'
import { actJson, reasonText } from '../handlers/manual-act.js'
import { type Act, createPerformAct } from '../ingest/manual-acts.js'
import type { Environment } from '../provider/event.js'
import { loadErasure } from '../store/erasures.js'
import { loadManualEvent } from '../store/manual-events.js'
import { defaultEnvironment, environmentOption, jsonLine, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'
import { type ChangeOptions, type DaemonRequest, throughDaemon, withDaemonOption } from './daemon-client.js'
import { openIngest } from './open-ingest.js'

export interface ActOptions extends ChangeOptions {
  readonly environment?: Environment
  readonly reason?: string
}

/** An act as both ways take it: as a request to a daemon, and as what is to be done. */
export interface CommandedAct {
  readonly customerId: string
  readonly act: Act
  readonly method: DaemonRequest['method']
  /** Below the customer, such as `grants`; its ids percent-encoded. */
  readonly path: string
  readonly body: object
}

/** The options that every command by which an operator acts has. */
export function withActOptions(command: Command, example: string): Command {
  return withDaemonOption(withSharedOptions(command, example)).addOption(environmentOption())
}

/** Acts through the running daemon, or on its stopped database, and shows what the customer may use since. */
export async function runAct(done: CommandedAct, options: ActOptions, context: CliContext): Promise<void> {
  const { customerId, method, path, body } = done
  const query = options.environment === undefined ? '' : `?environment=${options.environment}`
  const request = {
    method,
    path: `/customers/${encodeURIComponent(customerId)}/${path}${query}`,
    body: { ...body, ...(options.reason === undefined ? {} : { reason: options.reason }) },
  }
  const answer = await throughDaemon(options, context, request, (config) =>
    actDirectly(done, options, config, context),
  )
  context.out(options.json ? jsonLine(answer) : describe(answer as ReturnType<typeof actJson>))
}

async function actDirectly(
  { customerId, act }: CommandedAct,
  options: ActOptions,
  config: Config,
  { now: clock }: CliContext,
): Promise<unknown> {
  const { store, ingest, close } = await openIngest(config, clock)
  try {
    const performAct = createPerformAct({
      write: ingest,
      findAct: (environment, eventId) => loadManualEvent(store.reader, environment, eventId),
      readAccess: store.readAccess,
      isErased: async (environment, customerId) =>
        (await loadErasure(store.reader, environment, customerId)) !== null,
      clock,
    })
    const environment = options.environment ?? defaultEnvironment(config.endpoints)
    const reason = options.reason ?? null
    return actJson(
      await performAct({ environment, customerId, act, actor: systemUser(), reason, idempotencyKey: null }),
    )
  } finally {
    await close()
  }
}

function describe({ eventId, customerId, environment, entitlements }: ReturnType<typeof actJson>): string {
  const lines = entitlements.map(
    ({ productId, status, until }) => `${productId}  ${status}  until ${until ?? '—'}`,
  )
  if (lines.length === 0) lines.push(`${customerId} has no access in ${environment}`)
  return `${[`done: ${eventId}`, ...lines].join('\n')}\n`
}

/** Reads `--reason`. */
export function parseReason(text: string): string {
  const parsed = reasonText.safeParse(text)
  if (parsed.success) return parsed.data
  throw new InvalidArgumentError(`It ${parsed.error.issues[0]?.message}.`)
}
