import { type Command, Option } from 'commander'
import type { Config } from '../config/types.js'
import type { EventFilter } from '../entitlements/stored-event.js'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { defaultEnvironment, environmentOption, parseId, parseInstant } from './command.js'

type StoredDisposition = NonNullable<EventFilter['disposition']>

/** Every one there is: one that is left out does not compile. */
const DISPOSITIONS = Object.keys({
  applied: true,
  ignored: true,
  held: true,
  quarantined: true,
} satisfies Record<StoredDisposition, true>)

/** How a command says which stored events it means. */
export interface EventFilterOptions {
  readonly type?: string
  readonly disposition?: StoredDisposition
  readonly customer?: string
  readonly endpoint?: string
  readonly from?: number
  readonly to?: number
  readonly environment?: Environment
}

export function withEventFilter(command: Command): Command {
  return command
    .option('--type <type>', 'only of this type, such as payment.succeeded for either generation', parseId)
    .addOption(new Option('--disposition <word>', 'only what became of so').choices(DISPOSITIONS))
    .option('--customer <id>', 'only what names this customer', parseId)
    .option('--endpoint <name>', 'only what came through this endpoint', parseId)
    .option('--from <time>', 'only what was first received then, or later', parseInstant)
    .option('--to <time>', 'only what was first received before', parseInstant)
    .addOption(environmentOption())
    .hook('preAction', (filtered) => assertInOrder(filtered.opts<EventFilterOptions>()))
}

/** Ahead of all else, whoever is asked then: this database or a daemon. */
function assertInOrder({ from, to }: EventFilterOptions): void {
  if (from !== undefined && to !== undefined && from > to)
    throw new LatchkeyError('usage', '--from is later than --to')
}

export function eventFilterOf(options: EventFilterOptions, { endpoints }: Config): EventFilter {
  return {
    environment: options.environment ?? defaultEnvironment(endpoints),
    disposition: options.disposition ?? null,
    type: options.type ?? null,
    customerId: options.customer ?? null,
    endpoint: options.endpoint ?? null,
    from: options.from ?? null,
    to: options.to ?? null,
  }
}
