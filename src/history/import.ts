import type { Disposition, Receipt } from '../ingest/delivery.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import { type DeliveryInput, signedHeaders } from '../store/events.js'
import { type RefusedLine, readImportLine, refuseLine } from './line.js'

/** Which lines are imported. */
export interface ImportRules {
  /** Lines of other environments are refused. */
  readonly environments: readonly Environment[]
  /** Whether to import unsigned lines: changes by hand, reported events, and events whose bytes are gone. */
  readonly withManual: boolean
}

/** The result of a line. `left_out`: unsigned, and not asked for; `checked`: a dry run found nothing wrong. */
export type LineOutcome = { readonly outcome: Disposition | 'left_out' | 'checked' } | RefusedLine

export interface ImportDeps {
  /** Called for each line, since a reload may change the endpoints. */
  readonly endpointNamed: (name: string) => Endpoint | undefined
  /** Null: a dry run, which checks every line and stores none. */
  readonly ingest: ((delivery: DeliveryInput) => Promise<Receipt>) | null
  /** Epoch milliseconds. */
  readonly clock: () => number
}

/**
 * Imports lines of an export, in its order: if one id has several bodies, the first one counts. Resolves with the
 * results in that order, once everything valid is committed.
 * @throws LatchkeyError `not_stored`: sending the same lines again loses nothing; `store_unavailable` if damage to
 * stored events prevents writing a change by hand
 */
export function importLines(
  lines: readonly string[],
  { environments, withManual }: ImportRules,
  { endpointNamed, ingest, clock }: ImportDeps,
): Promise<readonly LineOutcome[]> {
  async function importLine(line: string): Promise<LineOutcome> {
    const read = readImportLine(line, endpointNamed, clock())
    if (read.outcome === 'refused') return read
    const { environment, headers, reading } = read.delivery
    if (!environments.includes(environment)) {
      return refuseLine('other_environment', `it belongs to ${environment}`)
    }
    const isSigned = signedHeaders(headers) !== null && reading === undefined
    if (!isSigned && !withManual) return { outcome: 'left_out' }
    return { outcome: ingest === null ? 'checked' : (await ingest(read.delivery)).disposition }
  }
  return Promise.all(lines.map(importLine))
}
