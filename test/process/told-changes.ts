import type { ReceivedMessage } from '../sync/webhook/receiver.js'
import { readStore } from './served.js'

/** By customer, the places in the change log, in the order that they came in. */
export type CursorsByCustomer = ReadonlyMap<string, readonly number[]>

/** What the change log holds. */
export async function cursorsLogged(folder: string): Promise<CursorsByCustomer> {
  const changes = await readStore(folder, (db) =>
    db.selectFrom('changes').select(['cursor', 'customer_id as customerId']).orderBy('cursor').execute(),
  )
  return byCustomer(changes)
}

/** What the outbound webhook told; what came again right after itself counts once. */
export function cursorsTold(received: readonly ReceivedMessage[]): CursorsByCustomer {
  const told = byCustomer(
    received.map(({ id, payload }) => ({
      customerId: payload.data.customerId,
      cursor: Number(id.split('_')[2]),
    })),
  )
  return new Map(
    [...told].map(([customerId, cursors]) => [
      customerId,
      cursors.filter((one, i) => one !== cursors[i - 1]),
    ]),
  )
}

function byCustomer(changes: readonly { customerId: string; cursor: number }[]): CursorsByCustomer {
  const found = new Map<string, number[]>()
  for (const { customerId, cursor } of changes) {
    const cursors = found.get(customerId) ?? []
    cursors.push(cursor)
    found.set(customerId, cursors)
  }
  return found
}
