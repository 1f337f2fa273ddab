/* The endpoints at the payments service: how they compare, and changes there that the config does not show. */

import { type Compared, checkRecords, compareEndpoints, shownAddress } from '../../doctor/service.js'
import { isLatchkeyError, LatchkeyError } from '../../errors.js'
import type { Environment } from '../../provider/event.js'
import { WIRE_TYPES } from '../../provider/event-types.js'
import type { WebhookEndpointChange } from '../../provider/requests.js'
import type { GivenCommand } from '../command.js'
import { loadNamedConfig, type SharedOptions } from '../context.js'
import { findingLine, linesText, table } from '../text.js'
import { checkedUrl, noteLacking, paymentsApi, registered } from './address.js'

type Given<Options = unknown> = GivenCommand<Record<never, never>, SharedOptions & Options>

/** Shows each endpoint of the config beside its record at the service, and what is wrong with that. */
export async function listEndpoints({
  options,
  context,
  show,
}: Given<{ readonly environment: Environment | undefined }>): Promise<void> {
  const { config } = await loadNamedConfig(options, context)
  const { environment } = options
  const chosen = config.endpoints.filter(
    (one) => environment === undefined || one.environment === environment,
  )
  const compared = await compareEndpoints(config, context.now, chosen)
  const findings = checkRecords(config, compared)
  const endpoints = compared.map((one) => ({ ...shownOf(one), note: noteOn(one) }))
  show({ endpoints, findings }, (paint) => {
    if (endpoints.length === 0) return 'no endpoints: add one with `latchkey endpoints register`\n'
    const rows = endpoints.map(({ name, environment, serviceId, service, lastEventAt }) => [
      name,
      environment,
      serviceId ?? '',
      service === null ? '' : service.isActive ? 'active' : 'inactive',
      service?.url ?? '',
      service === null ? '' : eventsText(service.enabledEvents),
      lastEventAt === null ? 'nothing received' : `last ${lastEventAt}`,
    ])
    const wrong = findings.filter(({ level }) => level !== 'ok')
    const notes = endpoints.map(({ name, note }) => note !== null && `note: ${name} is ${note}`)
    return (
      table(rows, paint) + wrong.map((finding) => findingLine(finding, paint)).join('') + linesText(notes)
    )
  })
  const failure = compared.find(({ record }) => isLatchkeyError(record))?.record
  if (isLatchkeyError(failure)) throw failure
}

function shownOf({ endpoint, record, received }: Compared) {
  const { name, environment, serviceId = null } = endpoint
  const isKnown = record !== null && !isLatchkeyError(record)
  return {
    name,
    environment,
    serviceId,
    service: isKnown ? recordOf(record) : null,
    lastEventAt: received.lastAt === null ? null : new Date(received.lastAt).toISOString(),
    generation: received.generation,
    apiVersion: received.apiVersion,
  }
}

type Shown = Exclude<Compared['record'], null | LatchkeyError>

function recordOf({ url, enabledEvents, isActive, apiVersion = null }: Shown) {
  return { url: shownAddress(url), enabledEvents, isActive, apiVersion }
}

/** What the API can't show of an endpoint, and why. */
function noteOn({ endpoint: { name, serviceId }, received: { generation } }: Compared): string | null {
  if (serviceId !== undefined) return null
  if (generation === 'v2')
    return `of v2: it is set up in the service's dashboard, which the API does not show`
  return `not compared: set endpoints.${name}.serviceId to its id at the service (whep_…), unless it is of v2, which is set up in the service's dashboard`
}

function eventsText({ length }: readonly string[]): string {
  return length === 0 ? 'all events' : `${length} of ${WIRE_TYPES.v3.length} types`
}

interface UpdateOptions {
  readonly url: string | undefined
  readonly events: readonly string[] | undefined
  readonly allEvents: true | undefined
  readonly enable: true | undefined
}

export async function updateEndpoint(given: Given<UpdateOptions>): Promise<void> {
  const { url, events, allEvents, enable } = given.options
  if (events !== undefined && allEvents)
    throw new LatchkeyError('usage', 'pass --events or --all-events, not both')
  if (url === undefined && events === undefined && !allEvents && !enable)
    throw new LatchkeyError('usage', 'say what to change: --url, --events, --all-events or --enable')
  const enabledEvents = allEvents ? [] : events && [...new Set(events)]
  await changeRecord(given, ({ name, environment }) => ({
    ...(url !== undefined && { url: checkedUrl(url, name, environment) }),
    ...(enabledEvents !== undefined && { enabledEvents }),
    ...(enable && { isActive: true }),
  }))
}

export async function disableEndpoint(given: Given): Promise<void> {
  await changeRecord(given, () => ({ isActive: false }))
}

async function changeRecord(
  { options, args: [name = ''], context, show }: Given,
  change: (endpoint: ReturnType<typeof registered>) => WebhookEndpointChange,
): Promise<void> {
  const { config } = await loadNamedConfig(options, context)
  const endpoint = registered(config, name)
  const { environment, serviceId } = endpoint
  const changes = change(endpoint)
  const api = paymentsApi(config, environment, context)
  const { record } = await api.webhookEndpoints.update(serviceId, changes)
  const service = recordOf(record)
  show({ name, environment, serviceId, service }, () =>
    linesText([
      `${name} (${serviceId}): ${service.isActive ? 'active' : 'the payments service sends nothing more to it'}, ${service.url}, ${eventsText(service.enabledEvents)}`,
      !service.isActive &&
        `Its secrets stay in the config for what is on its way; \`latchkey endpoints update ${name} --enable\` sends again.`,
    ]),
  )
  if (changes.enabledEvents !== undefined) noteLacking(config, name, changes.enabledEvents, context)
}
