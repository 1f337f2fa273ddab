/* How many have access over time, and how many gained and lost it. */

import { usePlace } from '../router.js'
import { statusWords } from '../shared/access.js'
import { Chart } from '../shared/chart.js'
import { DAY_MS, day, dayOf } from '../shared/days.js'
import { Choose } from '../shared/filters.js'
import { Go } from '../shared/links.js'
import { type AnswerOf, useGet } from '../shared/list.js'
import { Answer, type Column, Empty, Section, Table } from '../shared/show.js'

type Period = AnswerOf<'/changes/summary'>['periods'][number]

const sumOf = (periods: readonly Period[], name: 'gained' | 'lost'): number =>
  periods.reduce((sum, period) => sum + period[name], 0)

/** Losses by their reason, the most frequent first. */
function lossesIn(periods: readonly Period[]): string {
  const sums = new Map<string, number>()
  for (const [status, count] of periods.flatMap(({ lostBy }) => Object.entries(lostBy)))
    sums.set(status, (sums.get(status) ?? 0) + count)
  const sorted = [...sums].sort(([, a], [, b]) => b - a)
  return sorted.map(([status, count]) => `${statusWords(status)}: ${count}`).join('; ')
}

/** How many gained and lost access in all, and why. */
export function Sums({ of }: { readonly of: readonly Period[] }) {
  const why = lossesIn(of)
  return (
    <p>
      {sumOf(of, 'gained')} gained access, {sumOf(of, 'lost')} lost it{why !== '' && ` (${why})`}.
    </p>
  )
}

const SPANS = {
  quarter: { title: '90 days', days: 90, by: 'day' },
  year: { title: 'a year, by week', days: 365, by: 'week' },
} as const
const MONTH = { title: '30 days', days: 30, by: 'day' } as const

/** @param productId null: every product */
export function Numbers({ productId }: { readonly productId: string | null }) {
  const span = usePlace().parameters.get('span')
  const { days, by } = span === 'quarter' || span === 'year' ? SPANS[span] : MONTH
  const summary = useGet('/changes/summary', { from: `${day(days - 1)}T00:00:00Z`, by, productId })
  const options = Object.entries(SPANS).map(([name, { title }]) => [name, title] as const)
  const link = ({ from, to }: Period) => {
    const days = { from: dayOf(Date.parse(from)), to: dayOf(Date.parse(to) - 1) }
    return <Go to="/changes" with={{ ...days, product: productId }} text={days.from} />
  }
  const columns: readonly Column<Period>[] = [
    { title: by === 'day' ? 'Day (UTC)' : 'Week from (UTC)', cell: link },
    { title: 'Gained', isNumber: true, cell: ({ gained }) => gained },
    { title: 'Lost', isNumber: true, cell: ({ lost }) => lost },
    { title: 'Lost because', cell: (one) => lossesIn([one]) },
    { title: 'With access at the end', isNumber: true, cell: ({ active }) => active },
  ]
  return (
    <Section
      title="Over time"
      aside={<Choose label="Show" name="span" options={options} none={MONTH.title} />}
    >
      <Answer query={summary}>
        {({ periods }) => (
          <>
            <Charts of={periods} />
            <Sums of={periods} />
            <details>
              <summary>The same as a table</summary>
              <Table
                caption={`Gains and losses by ${by}`}
                rows={[...periods].reverse()}
                keyOf={({ from }) => from}
                columns={columns}
                empty={null}
              />
            </details>
          </>
        )}
      </Answer>
    </Section>
  )
}

function Charts({ of }: { readonly of: readonly Period[] }) {
  const [gained, lost, active] = [sumOf(of, 'gained'), sumOf(of, 'lost'), of.at(-1)?.active ?? 0]
  if (gained + lost + active === 0)
    return <Empty>Nobody has had access in this time. Numbers appear here with the first paid order.</Empty>
  // A bar of no height would be a line.
  const bars = (name: 'gained' | 'lost', sign: 1 | -1) => of.map(({ [name]: count }) => sign * count || null)
  const axis = {
    // At noon, each day is on the same date in nearly every zone.
    times: of.map(({ from }) => Date.parse(from) + DAY_MS / 2),
    format: { day: 'numeric', month: 'short' },
  } as const
  return (
    <div class="charts">
      <Chart
        {...axis}
        summary={`With access: ${active} now, ${of[0]?.active ?? 0} at the beginning.`}
        series={[{ label: 'With access', color: '--accent', values: of.map((one) => one.active) }]}
      />
      <Chart
        {...axis}
        summary={`${gained} gained access and ${lost} lost it.`}
        series={[
          { label: 'Gained', color: '--good', kind: 'bars', values: bars('gained', 1) },
          { label: 'Lost', color: '--bad', kind: 'bars', values: bars('lost', -1) },
        ]}
      />
    </div>
  )
}
