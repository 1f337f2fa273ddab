/* Operating the running daemon: its status, reloading the config, and stopping it. */

import { z } from 'zod'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { type DeepReadonly, environment, instant } from './answers.js'
import { API_SCOPES, type ApiKey } from './api-key.js'
import { ADMIN_OF_BOTH, type Route, route } from './route.js'

export interface ControlDeps {
  readonly control: {
    readonly status: () => Promise<DeepReadonly<z.output<typeof statusAnswer>>>
    /** @throws {LatchkeyError} `config_invalid`, `config_missing`: the running config stays */
    readonly reload: () => Promise<Reloaded>
    /** Begins to stop, and returns at once. */
    readonly stop: () => void
  }
}

export interface KeysDeps {
  readonly keys: () => Promise<readonly KeyUse[]>
}

/** An API key of the config, and when it was last used; null: never. */
export type KeyUse = ApiKey & { readonly lastUsedAt: number | null }

export const keysAnswer = z.object({
  keys: z.array(
    z.object({
      name: z.string(),
      scopes: z.array(z.enum(API_SCOPES)),
      environments: z.array(environment),
      createdAt: instant.nullable(),
      expiresAt: instant.nullable(),
      rateLimit: z.object({ perSecond: z.number(), burst: z.int() }).nullable(),
      isReplaced: z.boolean(),
      lastUsedAt: instant.nullable(),
    }),
  ),
})
export type KeysJson = z.input<typeof keysAnswer>

/** The result of reading the config file again. */
export const reloaded = z.object({
  /** The parts that were applied. */
  changed: z.array(z.string()),
  /** The changed keys that need a restart. */
  needsRestart: z.array(z.string()),
  /** Whether the configured policy differs from the one in force. */
  policyDiffers: z.boolean(),
})
export type Reloaded = DeepReadonly<z.output<typeof reloaded>>

export const statusAnswer = z.object({
  version: z.string(),
  pid: z.int(),
  startedAt: instant,
  config: z.string(),
  ready: z.boolean(),
  notes: z.array(z.string()),
  /** Null if there is no local socket. */
  listeners: z.object({
    api: z.string(),
    webhooks: z.string(),
    metrics: z.string(),
    socket: z.string().nullable(),
  }),
  /** While the store can't be read, `bytes`, `lastEventAt` and `sync` are null. */
  database: z.object({ file: z.string(), bytes: z.int().nullable() }),
  /** Deliveries that are not committed yet. */
  queue: z.object({ deliveries: z.int(), bytes: z.int() }),
  endpoints: z.array(z.object({ name: z.string(), environment, lastEventAt: instant.nullable() })),
  /** Null if no role, group or outbound webhook is configured. */
  sync: z
    .object({
      paused: z.boolean(),
      /** Whether this instance makes the calls; of several on one database, one does. */
      leads: z.boolean(),
      /** Memberships to change, memberships that wait for somebody, and removals above the bound. */
      due: z.int(),
      parked: z.int(),
      unconfirmed: z.int(),
      /** Messages of the outbound webhooks that wait. */
      messages: z.int(),
      unreachable: z.array(z.string()),
    })
    .nullable(),
  job: z.object({ name: z.string(), done: z.int(), total: z.int() }).nullable(),
})
export type StatusJson = z.input<typeof statusAnswer>

export const keysRoute = route('GET /keys', {
  operationId: 'listKeys',
  summary: 'The API keys, without their secrets, and when each was last used.',
  ...ADMIN_OF_BOTH,
  answer: keysAnswer,
  handle: async (_, { keys }: KeysDeps) => ({ keys: await keys() }),
})

export const controlRoutes: readonly Route<ControlDeps>[] = [
  route('GET /status', {
    operationId: 'getStatus',
    summary: 'The status of the daemon: version, uptime and work in progress.',
    ...ADMIN_OF_BOTH,
    answer: statusAnswer,
    handle: (_, { control }: ControlDeps) => control.status(),
  }),
  route('POST /reload', {
    operationId: 'reloadConfig',
    summary: 'Reads the config file again, as SIGHUP does.',
    ...ADMIN_OF_BOTH,
    answer: reloaded,
    async handle(_, { control }: ControlDeps) {
      try {
        return await control.reload()
      } catch (error) {
        if (!isLatchkeyError(error, 'config_invalid') && !isLatchkeyError(error, 'config_missing'))
          throw error
        const message = `${error.message}; the running config is kept`
        throw new LatchkeyError('invalid_request', message, { cause: error, issues: error.issues })
      }
    },
  }),
  route('POST /stop', {
    operationId: 'stopDaemon',
    summary: 'Stops the daemon, as SIGTERM does: requests in progress are answered first.',
    ...ADMIN_OF_BOTH,
    status: 202,
    answer: z.object({ stopping: z.literal(true) }),
    handle(_, { control }: ControlDeps) {
      control.stop()
      return { stopping: true as const }
    },
  }),
]
