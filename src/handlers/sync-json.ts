import type { Outage } from '../sync/outages.js'
import type { OutboundStatus } from '../sync/outbound/outbound.js'
import type { CallState, MembershipView, SyncPlan, SyncStatus } from '../sync/sync.js'
import { iso, isoOrNull } from './entitlement-json.js'

/** One account and one role or group, as the wire shows it. */
export function membershipJson(view: MembershipView) {
  return {
    environment: view.environment,
    target: view.target,
    accountId: view.accountId,
    customerId: view.customerId,
    state: view.state,
    desired: view.desired,
    desiredSince: iso(view.desiredSince),
    applied: view.applied,
    appliedAt: isoOrNull(view.appliedAt),
    given: view.given,
    attempts: view.attempts,
    nextAttemptAt: isoOrNull(view.nextAttemptAt),
    parked: view.parked,
    lastError: view.lastError,
  }
}

/** How it stands with roles and groups, and with the outbound webhook. */
export function syncStatusJson({ paused, platforms, targets, unconfirmed, sweptAt, checked }: SyncStatus) {
  return {
    paused,
    unconfirmed,
    sweptAt: isoOrNull(sweptAt),
    checked: checked && {
      at: iso(checked.at),
      problems: checked.problems.map(({ about, message }) => ({ about, message })),
    },
    platforms: platforms.map(({ platform, state }) => ({ platform, ...callStateJson(state) })),
    targets: targets.map(({ environment, target, state, counts }) => ({
      environment,
      target,
      ...callStateJson(state),
      memberships: counts,
    })),
  }
}

function callStateJson(state: CallState) {
  return {
    state: state.kind,
    until: state.kind === 'limited' ? iso(state.until) : null,
    reason: state.kind === 'ok' ? null : { code: state.code, message: state.message },
  }
}

/** What the outbound webhook has still to tell. */
export function outboundJson({ origin, messages }: OutboundStatus) {
  return {
    origin,
    messages: messages.map(({ parked, count, oldestAt, lastError }) => ({
      state: parked === null ? 'pending' : 'parked',
      reason: parked,
      count,
      oldestAt: iso(oldestAt),
      lastError,
    })),
  }
}

/** A platform, or the receiver of the outbound webhook (`webhook`), that can't be reached or keeps failing. */
export function outageJson({ name, since, reason }: Outage) {
  return { platform: name, since: isoOrNull(since), reason }
}

export type SyncStatusJson = ReturnType<typeof syncStatusJson> & {
  readonly webhook: ReturnType<typeof outboundJson> | null
  readonly unreachable: readonly ReturnType<typeof outageJson>[]
}

export function planJson({ paused, hash, calls }: SyncPlan) {
  return {
    paused,
    hash,
    calls: calls.map(({ environment, target, accountId, customerId, action, needsConfirmation }) => ({
      environment,
      target,
      accountId,
      customerId,
      action,
      needsConfirmation,
    })),
  }
}

export type SyncPlanJson = ReturnType<typeof planJson>
