import type { Endpoint } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import type { Disposition, Receipt, RecordedDelivery } from './delivery.js'
import { type ReadLine, type RefusedLine, readImportLine, refuseLine } from './import-line.js'

/** Which lines are taken. */
export interface ImportRules {
  /** Lines of others are refused. */
  readonly environments: readonly Environment[]
  /** Whether to take what nobody signed: what was done by hand, and what is told as it was read. */
  readonly withManual: boolean
}

/** What became of a line. `left_out`: signed by nobody, and not asked for; `checked`: a dry run found nothing wrong. */
export type LineOutcome = { readonly outcome: Disposition | 'left_out' | 'checked' } | RefusedLine

/**
 * Takes lines of an export, in its order: where one id has several bodies, the first stands. Resolves, in that order,
 * once all that could be taken is committed.
 * @throws {LatchkeyError} `not_stored`: nothing is lost if the same lines are sent again; `store_unavailable` where
 * something that is stored keeps what was done by hand from being written
 */
export type ImportLines = (lines: readonly string[], rules: ImportRules) => Promise<readonly LineOutcome[]>

export interface ImportLinesDeps {
  /** Asked for each line, since a reload may change the endpoints. */
  readonly endpointNamed: (name: string) => Endpoint | undefined
  readonly ingest: (delivery: RecordedDelivery) => Promise<Receipt>
  /** Epoch milliseconds. */
  readonly clock: () => number
}

type CheckLinesDeps = Omit<ImportLinesDeps, 'ingest'>

export function createImportLines({ ingest, ...deps }: ImportLinesDeps): ImportLines {
  async function take(line: string, rules: ImportRules): Promise<LineOutcome> {
    const checked = checkLine(line, rules, deps)
    return checked.outcome === 'read' ? { outcome: (await ingest(checked.delivery)).disposition } : checked
  }
  return (lines, rules) => Promise.all(lines.map((line) => take(line, rules)))
}

/** Checks all that importing them would check, and takes none. */
export function createCheckLines(deps: CheckLinesDeps): ImportLines {
  return async (lines, rules) =>
    lines.map((line) => {
      const checked = checkLine(line, rules, deps)
      return checked.outcome === 'read' ? { outcome: 'checked' } : checked
    })
}

function checkLine(
  line: string,
  { environments, withManual }: ImportRules,
  { endpointNamed, clock }: CheckLinesDeps,
): ReadLine | { readonly outcome: 'left_out' } {
  const read = readImportLine(line, endpointNamed, clock())
  if (read.outcome === 'refused') return read
  const { environment, headers, reading } = read.delivery
  if (!environments.includes(environment))
    return refuseLine('other_environment', `it belongs to ${environment}`)
  const isSigned = headers !== null && reading === undefined
  return isSigned || withManual ? read : { outcome: 'left_out' }
}
