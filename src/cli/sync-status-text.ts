import type { SyncStatusJson } from '../handlers/sync-json.js'
import { alignColumns } from './columns.js'
import { counted, durationText } from './doctor/amounts.js'

type TargetJson = SyncStatusJson['targets'][number]
type WebhookJson = NonNullable<SyncStatusJson['webhook']>

/** How roles, groups and the outbound webhook stand, and what an operator can do about it. */
export function statusText(status: SyncStatusJson, now: number): string {
  const { paused, unconfirmed, sweptAt, checked, platforms, targets, webhook, unreachable } = status
  const named = [
    ...platforms.map(({ platform, ...one }) => ({ name: platform as string, ...one })),
    ...targets.map(({ target, ...one }) => ({ name: target, ...one })),
  ]
  const stopped = named.filter(({ state }) => state === 'stopped').map(({ name }) => name)
  const lines = [
    ...(paused ? ['paused: no call is made until `latchkey sync resume`'] : []),
    ...alignColumns(targets.map(targetCells)),
    ...(targets.length === 0 ? ['no product has a role or group that follows it'] : []),
    ...unreachable.map(
      ({ platform, since, reason }) =>
        `${platform}: unreachable ${since === null ? 'when last tried' : `since ${since}`}: ${reason}`,
    ),
    ...named.flatMap((one) => callLines(one, now)),
    ...(checked === null ? [] : checkLines(checked, stopped, now)),
    ...(targets.some(({ memberships }) => memberships.waiting > 0)
      ? [
          'what is waiting comes by itself once the customer joins: see `latchkey sync status --state waiting`',
        ]
      : []),
    ...(targets.some(({ memberships }) => memberships.parked > 0)
      ? ['what is parked waits for somebody: see `latchkey sync status --state parked`']
      : []),
    ...(unconfirmed > 0
      ? [`${counted(unconfirmed, 'removal')} beyond the bound: see \`latchkey sync plan\``]
      : []),
    ...(sweptAt === null ? [] : [`last sweep ${ago(sweptAt, now)}`]),
    ...(webhook === null ? [] : webhookLines(webhook, now)),
  ]
  return `${lines.join('\n')}\n`
}

function targetCells({ environment, target, memberships }: TargetJson): readonly string[] {
  const counts = Object.entries(memberships).filter(([state, count]) => count > 0 || state === 'settled')
  return [environment, target, counts.map(([state, count]) => `${count} ${state}`).join(', ')]
}

/** A limit whose time is over stays known until an answer comes to the next call. */
function callLines(
  { name, state, until, reason }: { readonly name: string } & Pick<TargetJson, 'state' | 'until' | 'reason'>,
  now: number,
): readonly string[] {
  switch (state) {
    case 'ok':
      return []
    case 'limited': {
      const isOver = until === null || Date.parse(until) <= now
      const when = isOver ? 'tried again with the next call' : `no call before ${until}`
      return [`${name}: ${when}: ${reason?.message}`]
    }
    case 'stopped':
      return [`${name}: stopped until \`latchkey sync run\`: ${reason?.message}`]
    default:
      return state satisfies never
  }
}

/** What is stopped has told why. */
function checkLines(
  { at, problems }: NonNullable<SyncStatusJson['checked']>,
  stopped: readonly string[],
  now: number,
): readonly string[] {
  return problems
    .filter(({ about }) => !stopped.includes(about))
    .map(({ about, message }) => `${about}: ${message} (checked ${ago(at, now)})`)
}

function webhookLines({ origin, messages }: WebhookJson, now: number): readonly string[] {
  const parts = messages.map(
    ({ state, count, oldestAt, lastError }) =>
      `${count} ${state}, the oldest ${ago(oldestAt, now)}${lastError === null ? '' : ` (${lastError})`}`,
  )
  const isParked = messages.some(({ state }) => state === 'parked')
  return [
    `webhook to ${origin}: ${parts.length === 0 ? 'nothing to send' : parts.join('; ')}`,
    ...(isParked ? ['send what is parked again: `latchkey sync run --retry --target webhook`'] : []),
  ]
}

function ago(instant: string, now: number): string {
  return `${durationText(Math.max(0, now - Date.parse(instant)))} ago`
}
