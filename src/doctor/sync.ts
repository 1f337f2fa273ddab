import type { SyncStatusJson } from '../handlers/sync.js'
import { PLATFORMS, type PlatformName } from '../provider/accounts.js'
import { counted, durationText, type Finding, fail, ok, warn } from './finding.js'

type WebhookJson = SyncStatusJson['webhooks'][number]

/** A receiver that is being redeployed is back sooner. */
const LONG_MS = 3_600_000

/** Checks that roles, groups and the outbound webhooks follow access; no findings if none is configured. */
export function checkSync(status: SyncStatusJson, now: number): readonly Finding[] {
  return [
    ...(status.targets.length === 0 ? [] : checkMemberships(status)),
    ...checkStops(status),
    ...checkOutages(status, now),
    ...status.webhooks.map((one) => checkWebhook(one, status, now)),
  ]
}

function checkMemberships({ paused, unconfirmed, targets }: SyncStatusJson): readonly Finding[] {
  const total = (of: keyof SyncStatusJson['targets'][number]['memberships']) =>
    targets.reduce((sum, { memberships }) => sum + memberships[of], 0)
  const waiting = total('waiting')
  const detail = [
    counted(targets.length, 'target'),
    `${total('settled')} settled`,
    `${total('due') + total('retrying')} under way`,
    ...(waiting === 0 ? [] : [`${waiting} waiting for the customer to join`]),
  ].join(', ')
  const parked = total('parked')
  return [
    paused ? warn('sync', `paused, ${detail}`, 'continue with `latchkey sync resume`') : ok('sync', detail),
    ...(parked === 0
      ? []
      : [
          warn(
            'sync parked',
            `${counted(parked, 'membership')} parked until somebody acts`,
            'see why: `latchkey sync status --state parked`',
          ),
        ]),
    ...(unconfirmed === 0
      ? []
      : [
          warn(
            'sync bound',
            `${counted(unconfirmed, 'removal')} above the bound, held for review`,
            'review them: `latchkey sync plan`',
          ),
        ]),
  ]
}

/** Stopped platforms and targets, and problems that have stopped nothing yet. */
function checkStops({ checked, platforms, targets }: SyncStatusJson): readonly Finding[] {
  const stopped = [
    ...platforms.map(({ platform, ...one }) => ({ name: platform as string, ...one })),
    ...targets.map(({ target, ...one }) => ({ name: target, ...one })),
  ].filter(({ state }) => state === 'stopped')
  const problems = checked?.problems.filter(({ about }) => !stopped.some(({ name }) => name === about)) ?? []
  return [
    ...stopped.flatMap(({ name, reason }) =>
      reason === null
        ? []
        : [fail(`sync ${name}`, `stopped: ${reason.message}`, 'once that is fixed, run `latchkey sync run`')],
    ),
    ...problems.map(({ about, message }) =>
      fail(`sync ${about}`, message, 'once that is fixed, run `latchkey sync check`'),
    ),
  ]
}

/** An outage of a webhook is reported with its waiting messages. */
function checkOutages({ unreachable, targets }: SyncStatusJson, now: number): readonly Finding[] {
  return unreachable.flatMap(({ platform, since, reason }) => {
    if (platform.startsWith('webhook:')) return []
    const waiting = targets
      .filter(({ target }) => target.startsWith(`${platform}:`))
      .reduce((sum, { memberships }) => sum + memberships.due + memberships.retrying, 0)
    const name = PLATFORMS[platform as PlatformName].title
    const age = durationText(Math.max(0, now - Date.parse(since)))
    const detail = `${name} has been unreachable for ${age}, ${counted(waiting, 'membership')} waiting: ${reason}`
    return [
      warn(
        `sync ${platform}`,
        detail,
        `check the network, and whether ${name} is down; retried automatically`,
      ),
    ]
  })
}

function checkWebhook(
  { id, disabled, waiting, oldestWaitingAt, failed, lastDeliveredAt, lastError }: WebhookJson,
  { paused, unreachable }: SyncStatusJson,
  now: number,
): Finding {
  const ageOf = (at: string) => Math.max(0, now - Date.parse(at))
  const isLate = oldestWaitingAt !== null && ageOf(oldestWaitingAt) > LONG_MS
  const isFailing =
    lastError !== null && (lastDeliveredAt === null || Date.parse(lastError.at) > Date.parse(lastDeliveredAt))
  const state = disabled ? ['disabled'] : paused ? ['paused'] : []
  const detail = [
    ...state,
    ...(oldestWaitingAt === null ? [] : [`${waiting} waiting for ${durationText(ageOf(oldestWaitingAt))}`]),
    ...(failed === 0 ? [] : [`${failed} failed`]),
    ...(waiting + failed === 0 ? ['nothing to send'] : []),
    ...(lastDeliveredAt === null ? [] : [`last delivery ${durationText(ageOf(lastDeliveredAt))} ago`]),
    ...(isFailing ? [`last error ${durationText(ageOf(lastError.at))} ago: ${lastError.reason}`] : []),
  ].join(', ')
  const what = `sync webhook:${id}`
  if (failed > 0) {
    return warn(what, detail, `fix the receiver, then \`latchkey sync run --retry --target webhook:${id}\``)
  }
  if (disabled) return ok(what, detail)
  if (paused) return warn(what, detail, 'continue with `latchkey sync resume`')
  const isOut = unreachable.some(({ platform }) => platform === `webhook:${id}`)
  return isOut || isLate ? warn(what, detail, 'check the receiver') : ok(what, detail)
}
