import type { Outage } from '../sync/outages.js'
import type { OutboundStatus } from '../sync/outbound/outbound.js'
import type { CheckFinding } from '../sync/platform.js'
import type { CallState, MembershipView, SyncPlan, SyncRun, SyncStatus } from '../sync/sync.js'
import { iso, isoOrNull } from './answers.js'

/** All that follows access, as it is now. */
export interface SyncState {
  readonly sync: SyncStatus
  /** Null: no outbound webhook is configured. */
  readonly outbound: OutboundStatus | null
  /** Those that can't be reached now. */
  readonly outages: readonly Outage[]
}

export function syncStateJson({ sync, outbound, outages }: SyncState) {
  const { paused, platforms, targets, unconfirmed, sweptAt, checked } = sync
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
    webhook: outbound && outboundJson(outbound),
    unreachable: outages.map(({ name, since, reason }) => ({
      platform: name,
      since: isoOrNull(since),
      reason,
    })),
  }
}
export type SyncStatusJson = ReturnType<typeof syncStateJson>

function callStateJson(state: CallState) {
  return {
    state: state.kind,
    until: state.kind === 'limited' ? iso(state.until) : null,
    reason: state.kind === 'ok' ? null : { code: state.code, message: state.message },
  }
}

function outboundJson({ origin, messages }: OutboundStatus) {
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

/** One account and one role or group. */
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

export type SyncPlanJson = SyncPlan

export function checkJson(findings: readonly CheckFinding[]) {
  return {
    ok: findings.every(({ isFine }) => isFine),
    findings: findings.map(({ about, isFine, message }) => ({ about, ok: isFine, message })),
  }
}
export type SyncCheckJson = ReturnType<typeof checkJson>

export interface SyncRunReport extends SyncRun {
  /** Messages of the outbound webhook that `retry` made due. */
  readonly messages: number
}

export type SyncRunJson =
  | ({ readonly done: boolean } & SyncRunReport)
  /** It takes longer, and goes on. */
  | { readonly done: false; readonly left?: never; readonly stopped?: never }
