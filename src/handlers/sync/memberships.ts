/* Memberships in roles and groups. */

import { z } from 'zod'
import { PLATFORM_NAMES } from '../../provider/accounts.js'
import type { MembershipKey } from '../../store/memberships.js'
import type { ShownState } from '../../sync/membership.js'
import { environment, instant } from '../answers.js'
import { idParameter, invalidParameter, limitParameter, pageOf, paginated, placeIn } from '../query.js'
import { ADMIN, type Route, route } from '../route.js'
import type { SyncQuestionDeps } from './deps.js'

export const platform = z.enum(PLATFORM_NAMES)
export const failure = z.object({ code: z.string(), message: z.string() })
export const STATES = [
  'settled',
  'due',
  'retrying',
  'waiting',
  'parked',
  'unconfirmed',
] as const satisfies readonly ShownState[]
const membershipState = z.enum(STATES, `must be one of ${STATES.join(', ')}`)

/** One account and one role or group. */
export const membership = z.object({
  environment,
  target: z.string(),
  accountId: z.string(),
  customerId: z.string(),
  state: membershipState,
  desired: z.boolean(),
  desiredSince: instant,
  applied: z.enum(['unknown', 'member', 'absent']),
  appliedAt: instant.nullable(),
  given: z.boolean(),
  attempts: z.int(),
  nextAttemptAt: instant.nullable(),
  parked: failure.nullable(),
  lastError: failure.nullable(),
})
export type MembershipJson = z.input<typeof membership>

const membershipPlace = placeIn<MembershipKey>(
  (text) => {
    try {
      const [of, target, accountId] = z.tuple([environment, z.string(), z.string()]).parse(JSON.parse(text))
      return { environment: of, target, accountId }
    } catch {
      return null
    }
  },
  (key) => JSON.stringify([key.environment, key.target, key.accountId]),
)

export const membershipRoutes: readonly Route<SyncQuestionDeps>[] = [
  route('GET /sync/memberships', {
    operationId: 'listMemberships',
    summary: 'Who should be, and who is, a member of which role or group.',
    ...ADMIN,
    query: z.object({
      state: membershipState.exactOptional(),
      target: idParameter.exactOptional(),
      customerId: idParameter.exactOptional(),
      limit: limitParameter,
      cursor: membershipPlace.exactOptional(),
    }),
    answer: pageOf(membership, membershipPlace),
    async handle({ query: { cursor, ...filter }, environments }, { sync }: SyncQuestionDeps) {
      const after = cursor === undefined ? {} : { after: cursor }
      const { items, next } = await sync.memberships({ environments, ...filter, ...after })
      if (items.length === 0 && filter.target !== undefined) {
        const problem = targetProblem(filter.target, await sync.targets(environments))
        if (problem !== null) throw invalidParameter('target', problem)
      }
      return { items, pagination: paginated(next) }
    },
  }),
]

/** The problem with a name that nothing has, or had, of what can be named here; null if it is one of them. */
export function targetProblem(target: string, names: readonly string[]): string | null {
  if (names.includes(target)) return null
  return names.length === 0
    ? 'must be a role or group of the config, which has none here'
    : `must be one of ${names.join(', ')}`
}
