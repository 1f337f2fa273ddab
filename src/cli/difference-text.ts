import type { SummaryJson } from '../handlers/rebuild-json.js'
import type { Environment } from '../provider/event.js'

/** What differs, for a person: how many, and some of them, a line each. `environment`: the only one that it is about. */
export function differenceText(
  summary: SummaryJson,
  { conditional, environment }: { conditional: boolean; environment?: Environment },
): string {
  const { gains, losses, otherwise, sample } = summary
  const total = gains + losses + otherwise
  const where = environment === undefined ? '' : ` in ${environment}`
  if (total === 0) return `nobody’s access ${conditional ? 'would change' : 'has changed'}${where}\n`
  const would = conditional ? 'would ' : ''
  const counts = `${gains} ${would}gain access, ${losses} ${would}lose it, ${otherwise} ${would}stand otherwise\n`
  const lines = sample.map(
    ({ environment, customerId, productId, before, after }) =>
      `${environment}  ${customerId}  ${productId}  ${standing(before)} -> ${standing(after)}\n`,
  )
  const more = total > sample.length ? [`and ${total - sample.length} more\n`] : []
  return [counts, ...lines, ...more].join('')
}

function standing({ status, until }: SummaryJson['sample'][number]['before']): string {
  return until === null ? status : `${status} (${until})`
}
