/* How many have access over time, and how many gained and lost it. */

import type { AnswerOf } from '../api.js'
import { statusWords } from '../shared/access.js'
import { Chart } from '../shared/chart.js'
import { Filters, useFilter } from '../shared/fields.js'
import { Go } from '../shared/links.js'
import { Answer, type Of, Says, Section } from '../shared/show.js'
import { named, Table } from '../shared/table.js'
import { DAY_MS, day, dayOf } from '../shared/text.js'
import { useGet } from '../shared/use-query.js'

type Period = AnswerOf<'/changes/summary'>['periods'][number]

const sumOf = (periods: readonly Period[], name: 'gained' | 'lost'): number =>
  periods.reduce((sum, period) => sum + period[name], 0)

function lossesIn(periods: readonly Period[]): string {
  const sums = new Map<string, number>()
  for (const [status, count] of periods.flatMap(({ lostBy }) => Object.entries(lostBy)))
    sums.set(status, (sums.get(status) ?? 0) + count)
  const sorted = [...sums].sort(([, a], [, b]) => b - a)
  return sorted.map(([status, count]) => `${statusWords(status)}: ${count}`).join('; ')
}

export function Sums({ of }: Of<readonly Period[]>) {
  const why = lossesIn(of)
  const lost = `${sumOf(of, 'lost')} lost it${why && ` (${why})`}`
  return <Says text={`${sumOf(of, 'gained')} gained access, ${lost}.`} />
}

const SPANS = { quarter: [90, 'day'], year: [365, 'week'] } as const
const TITLES = Object.entries({ quarter: '90 days', year: 'a year, by week' })
const FIELDS = [{ label: 'Show', name: 'span', options: TITLES, none: '30 days' }]

/** @param productId null: every product */
export function Numbers({ productId }: { readonly productId: string | null }) {
  const { span } = useFilter(FIELDS)
  const [days, by] = span === 'quarter' || span === 'year' ? SPANS[span] : ([30, 'day'] as const)
  const summary = useGet('/changes/summary', { from: `${day(days - 1)}T00:00:00Z`, by, productId })
  const link = ({ from, to }: Period) => {
    const between = { from: dayOf(Date.parse(from)), to: dayOf(Date.parse(to) - 1) }
    return <Go to="/changes" with={{ ...between, product: productId }} text={between.from} />
  }
  return (
    <Section title="Over time" aside={<Filters fields={FIELDS} />}>
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
                columns={{
                  [by === 'day' ? 'Day (UTC)' : 'Week from (UTC)']: link,
                  ...named({ gained: 'Gained', lost: 'Lost' }),
                  'Lost because': (one) => lossesIn([one]),
                  ...named({ active: 'With access at the end' }),
                }}
              />
            </details>
          </>
        )}
      </Answer>
    </Section>
  )
}

function Charts({ of }: Of<readonly Period[]>) {
  const [gained, lost, active] = [sumOf(of, 'gained'), sumOf(of, 'lost'), of.at(-1)?.active ?? 0]
  if (gained + lost + active === 0)
    return <p>Nobody has had access in this time. Numbers appear here with the first paid order.</p>
  // A bar of no height would be a line.
  const bars = (name: 'gained' | 'lost', sign: 1 | -1) => of.map(({ [name]: count }) => sign * count || null)
  // At noon, each day is on the same date in nearly every zone.
  const times = of.map(({ from }) => Date.parse(from) + DAY_MS / 2)
  const axis = { times, format: { day: 'numeric', month: 'short' } } as const
  const held = of.map((one) => one.active)
  const had = { label: 'With access', color: '--link', kind: 'line', values: held } as const
  return (
    <div class="grid grid-cols-[repeat(auto-fit,minmax(min(22rem,100%),1fr))] gap-4">
      <Chart
        {...axis}
        summary={`With access: ${active} now, ${of[0]?.active ?? 0} at the beginning.`}
        series={[had]}
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
