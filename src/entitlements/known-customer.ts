import type { CustomerDetails, Environment } from '../provider/event.js'
import type { Block } from './blocks.js'
import type { SourceState, SourceView } from './model.js'

/** One thing that is known of a person, the event that told it, and when that happened (epoch milliseconds). */
export interface KnownFact {
  readonly value: string
  readonly at: number
  readonly by: string
}

/** One source as it stands for one product; `view` is null for a source that never gave access to any. */
export interface KnownSource {
  readonly source: SourceState
  readonly productId: string | null
  readonly view: SourceView | null
}

/** All that is known of one person in one environment. Personal data: never logged. */
export interface KnownCustomer {
  readonly customerId: string
  readonly environment: Environment
  readonly facts: Readonly<Partial<Record<keyof CustomerDetails | 'externalRef', KnownFact>>>
  /** The newest value of each key. */
  readonly metadata: Readonly<Record<string, KnownFact>>
  /** Everything that leads to them, not only the newest: `externalRef` or `metadata.<key>`. */
  readonly references: readonly { readonly name: string; readonly value: string }[]
  readonly blocks: readonly Block[]
  /** When the provider says it deleted them, in epoch milliseconds; changes no access. */
  readonly deletedAt: number | null
  /** When they were erased first, in epoch milliseconds: nothing personal is kept of them since. */
  readonly erasedAt: number | null
  readonly sources: readonly KnownSource[]
}
