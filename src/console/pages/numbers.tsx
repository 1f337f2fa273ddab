/* How many have access over time, and how many gained and lost it. */

import { answerOf, api, type Schemas } from '../api.js'
import { now } from '../now.js'
import { usePlace } from '../router.js'
import { useSession } from '../session.js'
import { statusWords } from '../shared/access.js'
import { Chart } from '../shared/chart.js'
import { Choose } from '../shared/choose.js'
import { DAY_MS, dayOf } from '../shared/days.js'
import { Go } from '../shared/links.js'
import { Answer, Empty, Section, Table } from '../shared/show.js'
import { useQuery } from '../shared/use-query.js'

const SPANS = {
  month: { title: '30 days', days: 30, by: 'day' },
  quarter: { title: '90 days', days: 90, by: 'day' },
  year: { title: 'a year, by week', days: 365, by: 'week' },
} as const
const OTHERS = (['quarter', 'year'] as const).map((name) => [name, SPANS[name].title] as const)

/** As the API answers `GET /changes/summary`. */
interface Period {
  readonly from: string
  readonly to: string
  readonly gained: number
  readonly lost: number
  readonly lostBy: Readonly<Partial<Record<Schemas['Status'], number>>>
  readonly active: number
}

/** Losses by their reason, the most frequent first. */
function lossesIn(periods: readonly Pick<Period, 'lostBy'>[]): readonly (readonly [string, number])[] {
  const sums = new Map<string, number>()
  for (const { lostBy } of periods)
    for (const [status, count] of Object.entries(lostBy)) sums.set(status, (sums.get(status) ?? 0) + count)
  return [...sums].sort(([, a], [, b]) => b - a)
}

/** How many gained and lost access in all, and why. */
export function Sums({ of }: { readonly of: readonly Period[] }) {
  const why = lossesIn(of).map(([status, count]) => `${statusWords(status)}: ${count}`)
  return (
    <p>
      {sumOf(of, 'gained')} gained access, {sumOf(of, 'lost')} lost it
      {why.length > 0 && ` (${why.join('; ')})`}.
    </p>
  )
}

const sumOf = (periods: readonly Period[], name: 'gained' | 'lost'): number =>
  periods.reduce((sum, period) => sum + period[name], 0)

/** @param productId null: every product */
export function Numbers({ productId }: { readonly productId: string | null }) {
  const { environment } = useSession()
  const span = usePlace().parameters.get('span')
  const { days, by } = SPANS[span === 'quarter' || span === 'year' ? span : 'month']
  const summary = useQuery(
    (signal) => {
      const from = new Date(now() - (days - 1) * DAY_MS).toISOString()
      const query = { environment, from, by, ...(productId !== null && { productId }) }
      return answerOf(api.GET('/changes/summary', { params: { query }, signal }))
    },
    [environment, productId, days, by],
  )
  return (
    <Section
      title="Over time"
      aside={<Choose label="Show" name="span" options={OTHERS} none={SPANS.month.title} />}
    >
      <Answer query={summary}>
        {({ periods }) => <Counted by={by} periods={periods} productId={productId} />}
      </Answer>
    </Section>
  )
}

function Counted({
  by,
  periods,
  productId,
}: {
  readonly by: 'day' | 'week'
  readonly periods: readonly Period[]
  readonly productId: string | null
}) {
  const last = periods.at(-1)
  const [gained, lost] = [sumOf(periods, 'gained'), sumOf(periods, 'lost')]
  if (last === undefined || (gained + lost === 0 && last.active === 0))
    return (
      <Empty>
        <p>Nobody has had access in this time. Numbers appear here with the first paid order.</p>
      </Empty>
    )
  // At noon, each day is on the same date in nearly every zone.
  const times = periods.map(({ from }) => Date.parse(from) + DAY_MS / 2)
  // A bar of no height would be a line.
  const bars = (name: 'gained' | 'lost', by: 1 | -1) =>
    periods.map(({ [name]: count }) => (count === 0 ? null : by * count))
  const format = { day: 'numeric', month: 'short' } as const
  return (
    <>
      <div class="charts">
        <Chart
          summary={`With access: ${last.active} now, ${periods[0]?.active ?? 0} at the beginning.`}
          times={times}
          format={format}
          series={[{ label: 'With access', color: '--accent', values: periods.map(({ active }) => active) }]}
        />
        <Chart
          summary={`${gained} gained access and ${lost} lost it.`}
          times={times}
          format={format}
          series={[
            { label: 'Gained', color: '--good', kind: 'bars', values: bars('gained', 1) },
            { label: 'Lost', color: '--bad', kind: 'bars', values: bars('lost', -1) },
          ]}
        />
      </div>
      <Sums of={periods} />
      <details>
        <summary>The same as a table</summary>
        <Table
          caption={`Gains and losses by ${by}`}
          rows={[...periods].reverse()}
          keyOf={({ from }) => from}
          columns={[
            {
              title: by === 'day' ? 'Day (UTC)' : 'Week from (UTC)',
              cell: ({ from, to }) => (
                <Go
                  to="/changes"
                  with={{
                    from: dayOf(Date.parse(from)),
                    to: dayOf(Date.parse(to) - 1),
                    product: productId,
                  }}
                >
                  {from.slice(0, 10)}
                </Go>
              ),
            },
            { title: 'Gained', isNumber: true, cell: (one) => one.gained },
            { title: 'Lost', isNumber: true, cell: (one) => one.lost },
            {
              title: 'Lost because',
              cell: (one) =>
                lossesIn([one])
                  .map(([status, count]) => `${statusWords(status)}: ${count}`)
                  .join('; '),
            },
            { title: 'With access at the end', isNumber: true, cell: (one) => one.active },
          ]}
          empty={null}
        />
      </details>
    </>
  )
}
