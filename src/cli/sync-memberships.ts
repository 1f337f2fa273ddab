import { membershipJson } from '../handlers/sync-json.js'
import type { MembershipState } from '../sync/sync.js'
import { alignColumns } from './columns.js'
import { jsonLine } from './command.js'
import type { CliContext } from './context.js'
import { throughDaemon } from './daemon-client.js'
import { queryText, type SyncOptions } from './sync-options.js'

/** As many as a daemon tells at once. */
const LIMIT = 100

/** Which memberships; left out: whatever it is. */
export interface MembershipsOptions extends SyncOptions {
  readonly state?: MembershipState
  readonly target?: string
  readonly customer?: string
}

interface MembershipsJson {
  readonly items: readonly ReturnType<typeof membershipJson>[]
  readonly hasMore: boolean
}

/** Shows the memberships that a filter means, and why each waits for somebody. */
export async function listMemberships(options: MembershipsOptions, context: CliContext): Promise<void> {
  const found = await readMemberships(options, context)
  if (options.json) return context.out(jsonLine(found))
  context.out(found.items.length === 0 ? 'there is no such membership\n' : listText(found))
  if (found.hasMore) context.err(`note: there are more than these ${LIMIT}\n`)
}

async function readMemberships(options: MembershipsOptions, context: CliContext): Promise<MembershipsJson> {
  const { state, target, customer: customerId, environment } = options
  const query = queryText({ environment, state, target, customerId, limit: String(LIMIT) })
  const request = { method: 'GET', path: `/sync/memberships${query}` } as const
  const answer = await throughDaemon(options, context, request, async (config) => {
    const filter = {
      limit: LIMIT,
      ...(environment !== undefined && { environments: [environment] }),
      ...(state !== undefined && { state }),
      ...(target !== undefined && { target }),
      ...(customerId !== undefined && { customerId }),
    }
    const { readSyncMemberships } = await import('./read-sync.js')
    const page = await readSyncMemberships(config, filter, context)
    return { items: page.items.map(membershipJson), pagination: { hasMore: page.next !== null } }
  })
  const { items, pagination } = answer as Pick<MembershipsJson, 'items'> & {
    readonly pagination: Pick<MembershipsJson, 'hasMore'>
  }
  return { items, hasMore: pagination.hasMore }
}

function listText({ items }: MembershipsJson): string {
  const lines = alignColumns(
    items.map(({ environment, target, accountId, customerId, state, desired, parked, lastError }) => [
      environment,
      target,
      accountId,
      customerId,
      desired ? 'in' : 'out',
      state,
      (parked ?? lastError)?.message ?? '',
    ]),
  )
  return `${lines.join('\n')}\n`
}
