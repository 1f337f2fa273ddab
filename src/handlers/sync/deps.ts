import type { SyncState } from '../../operations/metrics.js'
import type { Environment } from '../../provider/event.js'
import type { createOutbound } from '../../sync/outbound/outbound.js'
import type { RunOptions, SyncRun } from '../../sync/run.js'
import type { Sync } from '../../sync/sync.js'
import type { MountDeps } from '../route.js'

/** What the routes about the state of roles, groups and the outbound webhooks need. */
export interface SyncQuestionDeps extends MountDeps {
  readonly sync: SyncQuestions
}

export interface SyncQuestions extends Pick<Sync, 'explain' | 'memberships' | 'plan' | 'targets'> {
  /** @param environments whose targets and messages are shown; both if omitted */
  readonly status: (environments?: readonly Environment[]) => Promise<SyncState>
  /** The ids of the addresses of the outbound webhooks. */
  readonly webhooks: () => readonly string[]
}

/** The same, and what the routes need that change it, or call the platforms. */
export interface SyncDeps extends MountDeps {
  readonly sync: SyncControl
}

export interface SyncControl
  extends SyncQuestions,
    Pick<Sync, 'check' | 'isStopping' | 'pause' | 'resume'>,
    Pick<Awaited<ReturnType<typeof createOutbound>>, 'replay' | 'test'> {
  /** `messages`: messages of the outbound webhooks that `retry` made due. @throws LatchkeyError `plan_changed` */
  readonly run: (
    options: RunOptions,
  ) => Promise<SyncRun & { readonly messages: number; readonly leads: boolean }>
}
