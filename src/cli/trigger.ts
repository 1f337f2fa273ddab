import { randomBytes } from 'node:crypto'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Disposition, Receipt } from '../ingest/delivery.js'
import type { Generation, ProvenRail } from '../provider/event.js'
import { buildSampleEvent } from '../provider/sample-event.js'
import { jsonLine, parseId, parseInstant, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'
import { loadNamedConfig, type SharedOptions } from './context.js'
import { sendDelivery } from './send-delivery.js'
import { chooseEndpoint, currentSecret, type EndpointChoice, webhooksUrl } from './trigger-endpoint.js'
import { chooseIds, type IdOptions, numbered, type SampleIds } from './trigger-ids.js'
import { requireSampleType, sampleTypesText } from './trigger-types.js'

interface TriggerOptions extends SharedOptions, EndpointChoice, IdOptions {
  readonly generation?: Generation
  readonly rail: ProvenRail
  readonly at?: number
  readonly count: number
  readonly url?: string
}

const MAX_COUNT = 100_000
const LEFT_OUT = 'left out where --payment or --subscription names something known already'

/** What to know of a delivery that was taken in and has no effect yet. */
const HINTS: Readonly<Record<Disposition, string | null>> = {
  applied: null,
  ignored: null,
  held: 'held: it waits for its customer, its product or a proof of its rail; name them with --customer, --product, --rail',
  quarantined: "quarantined: kept, and not usable; the daemon's log says why",
  duplicate: null,
}

/** `latchkey trigger`: signs a sample event and delivers it to the running daemon, as the provider would. */
export function triggerCommand(program: Command, context: CliContext): void {
  withSharedOptions(
    program.command('trigger').addHelpText('after', sampleTypesText()),
    'trigger payment.authorized --customer cus_1 --product pro_1',
    'trigger payment.refunded --customer cus_1 --product pro_1',
  )
    .description('sign a sample event and send it to the running daemon')
    .argument('<type>', 'the event type, such as payment.authorized')
    .addOption(new Option('--generation <generation>', 'as which generation').choices(['v2', 'v3']))
    .option('--customer <id>', `about which customer (default: cus_test; ${LEFT_OUT})`, parseId)
    .option('--product <id>', `about which product (default: pro_test; ${LEFT_OUT})`, parseId)
    .option('--payment <id>', 'about which payment (default: follows from customer and product)', parseId)
    .option('--subscription <id>', 'about which subscription', parseId)
    .addOption(new Option('--rail <rail>', 'how it was paid').choices(['card', 'crypto']).default('card'))
    .option('--at <time>', 'when it happened (default: now)', parseInstant)
    .option('--endpoint <name>', 'to which endpoint (default: the first of the sandbox)')
    .option('--live', 'to a live endpoint: changes live access')
    .option('--count <n>', 'how many, each about a payment of its own', parseCount, 1)
    .option('--url <url>', 'where the daemon takes webhooks (default: as configured)', parseUrl)
    .action((type: string, options: TriggerOptions) => trigger(type, options, context))
}

async function trigger(type: string, options: TriggerOptions, context: CliContext): Promise<void> {
  const { config } = await loadNamedConfig(options, context)
  const endpoint = chooseEndpoint(config, options)
  const url = options.url ?? webhooksUrl(config)
  requireSampleType(type, options.generation)
  const ids = chooseIds(type, options)
  const hints = new Set<string>()

  for (let index = 0; index < options.count; index += 1) {
    const sentAt = context.now()
    const about = numbered(ids, index, options.count)
    const { body, event } = buildSampleEvent({
      type,
      ...(options.generation === undefined ? {} : { generation: options.generation }),
      eventId: `evt_${randomBytes(12).toString('hex')}`,
      createdAt: options.at ?? sentAt,
      environment: endpoint.environment,
      rail: options.rail,
      ...about,
    })
    const secret = currentSecret(endpoint, sentAt)
    const receipt = await sendDelivery({ url, endpoint: endpoint.name, secret, sentAt, event, body })
    const { paymentId, subscriptionId } = about
    const line = { type: event, id: receipt.id, paymentId, subscriptionId, disposition: receipt.disposition }
    context.out(options.json ? jsonLine(line) : sentLine(event, about, receipt))
    const hint = HINTS[receipt.disposition]
    if (hint !== null) hints.add(hint)
  }
  if (!options.json) for (const hint of hints) context.err(`${hint}\n`)
}

/** `payment.authorized  evt_1  pay_1  sub_1  applied`. */
function sentLine(
  event: string,
  { paymentId, subscriptionId }: SampleIds,
  { id, disposition }: Receipt,
): string {
  const parts = [event, id, paymentId, subscriptionId, disposition]
  return `${parts.filter((part) => part !== null).join('  ')}\n`
}

function parseCount(text: string): number {
  const count = /^[1-9][0-9]*$/.test(text) ? Number(text) : 0
  if (count < 1 || count > MAX_COUNT) throw new InvalidArgumentError(`It must be 1 to ${MAX_COUNT}.`)
  return count
}

function parseUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:/.test(text))
    throw new InvalidArgumentError('It must be an http address.')
  return text.replace(/\/+$/, '')
}
