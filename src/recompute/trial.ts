import type { SourceKey } from '../entitlements/model.js'
import { sourceKey } from '../entitlements/source-of.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import type { GroupRow } from '../store/group-rows.js'
import type { ToldPerson } from '../store/tellings.js'
import { accessDifferences, type GroupDifferences, stateDifferences } from './compare.js'
import { customerNode, type Group, keyIn, paymentNode, sourceNode } from './group.js'
import type { AccessDifference, CustomerAhead, StateDifference } from './report.js'

/** What is known of a store beside what is written in it: of one that is only compared, how it would be. */
export interface Trial {
  noteCompared(group: Group, differences: GroupDifferences, now: number): void
  notePeople(environment: Environment, people: ReadonlyMap<string, ToldPerson>): void
  /** Notes events that belong to a source whose history does not name them. */
  noteUnlisted(rows: readonly GroupRow[]): void
  /** Numbers of events that lead to a source, payment or customer, and that nothing stored leads to. */
  leadingTo(environment: Environment, node: string): Iterable<number>
  differences(): readonly AccessDifference[]
  customersAhead(): readonly CustomerAhead[]
}

/** @param withCustomers whether to remember how customers would be */
export function createTrial(
  withCustomers: boolean,
  onDifference: ((difference: StateDifference) => void) | undefined,
): Trial {
  const named = new Set<string>()
  const accessOf = new Map<string, readonly AccessDifference[]>()
  const ahead = new Map<string, CustomerAhead>()
  const leading = new Map<string, Set<number>>()

  function lead(environment: Environment, node: string, seq: number): void {
    const name = `${environment} ${node}`
    leading.set(name, (leading.get(name) ?? new Set()).add(seq))
  }

  function noteAhead(
    environment: Environment,
    customerId: string,
    next: Partial<Pick<CustomerAhead, 'activeProducts' | 'accounts'>>,
  ): void {
    const name = `${environment} ${customerId}`
    const known = ahead.get(name) ?? { environment, customerId, activeProducts: null, accounts: null }
    ahead.set(name, { ...known, ...next })
  }

  function noteLeading(group: Group, { readings, moved, sources }: GroupDifferences): void {
    const { environment, derived } = group
    for (const { row, stored } of readings) {
      const paymentId = paymentIn(stored.after)
      if (paymentId !== null && paymentId !== paymentIn(stored.before)) {
        lead(environment, paymentNode(paymentId), row.seq)
      }
    }
    for (const { seq, source, stored } of moved) {
      if (source !== null && !isSameSource(source, keyIn(stored.row)))
        lead(environment, sourceNode(source), seq)
    }
    for (const { key, folded } of sources) {
      const customerId = folded?.state.customerId ?? null
      if (customerId === null || customerId === group.sources.get(sourceKey(key))?.customer_id) continue
      for (const [seq, place] of derived.places) {
        if (isSameSource(key, place)) lead(environment, customerNode(customerId), seq)
      }
    }
  }

  return {
    noteCompared(group, differences, now) {
      const { environment } = group
      for (const difference of onDifference ? stateDifferences(group, differences, now) : []) {
        const name = JSON.stringify(difference)
        if (!named.has(name)) onDifference?.(difference)
        named.add(name)
      }
      for (const [customerId, access] of differences.access) {
        const changes = accessDifferences(environment, customerId, access)
        const name = `${environment} ${customerId}`
        if (changes.length > 0) accessOf.set(name, changes)
        else accessOf.delete(name)
        if (!withCustomers || (changes.length === 0 && !ahead.has(name))) continue
        const active = access.after.filter((one) => one.active)
        noteAhead(environment, customerId, { activeProducts: active.map(({ productId }) => productId) })
      }
      noteLeading(group, differences)
    },
    notePeople(environment, people) {
      for (const [customerId, { record }] of withCustomers ? people : []) {
        const { communityId, messengerId } = record?.facts ?? {}
        const accounts = { communityId: communityId?.value ?? null, messengerId: messengerId?.value ?? null }
        noteAhead(environment, customerId, { accounts })
      }
    },
    noteUnlisted(rows) {
      for (const row of rows) {
        const key = keyIn(row)
        if (key !== null) lead(row.environment, sourceNode(key), row.seq)
      }
    },
    leadingTo: (environment, node) => leading.get(`${environment} ${node}`) ?? [],
    differences: () => [...accessOf.values()].flat(),
    customersAhead: () => [...ahead.values()],
  }
}

function isSameSource(a: SourceKey, b: SourceKey | null): boolean {
  return b !== null && sourceKey(a) === sourceKey(b)
}

function paymentIn(event: NormalizedEvent | null): string | null {
  return event?.subject === 'payment' || event?.subject === 'subscription' ? event.paymentId : null
}
