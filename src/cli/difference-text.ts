import type { SummaryJson } from '../handlers/rebuild-json.js'

/** What differs, for a person: how many, and some of them, a line each. */
export function differenceText(summary: SummaryJson, { conditional }: { conditional: boolean }): string {
  const { gains, losses, otherwise, sample } = summary
  const total = gains + losses + otherwise
  if (total === 0) return conditional ? 'nobody’s access would change\n' : 'nobody’s access has changed\n'
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
