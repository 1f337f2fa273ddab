/* What runs, and what needs somebody. */

import { useEffect, useState } from 'preact/hooks'
import { answerOf, api, type Schemas } from '../api.js'
import { useSession } from '../session.js'
import { Chart, type Series } from '../shared/chart.js'
import { useGet } from '../shared/list.js'
import { useChanges } from '../shared/live.js'
import { Button, Title } from '../shared/page.js'
import { Answer, Badge, type Column, Empty, Facts, Section, Table } from '../shared/show.js'
import { Text } from '../shared/text.js'
import { durationText, Time } from '../shared/time.js'
import { useQuery } from '../shared/use-query.js'

/** Access changes at once; what else changes is looked at so often. */
const AGAIN_MS = 15_000

export function Overview() {
  const { environment, may } = useSession()
  const [round, setRound] = useState(0)
  const lookAgain = (): void => setRound((before) => before + 1)
  const live = useChanges(may('read') ? environment : null, lookAgain)
  useEffect(() => {
    const timer = window.setInterval(() => !document.hidden && lookAgain(), AGAIN_MS)
    return () => window.clearInterval(timer)
  }, [])
  return (
    <>
      <Title text="Overview">
        {live === 'on' && <Badge tone="good">up to date</Badge>}
        {live === 'connecting' && <Badge tone="warn">connecting</Badge>}
      </Title>
      {may('admin') && <Deliveries round={round} />}
      {may('admin', 'ofBoth') && <Daemon round={round} />}
      {may('admin', 'ofBoth') && <Findings />}
      {may('admin') && <LastBackfill />}
      {!may('admin') && (
        <Empty>
          <p>The state of the daemon needs a key with the scope admin. Search for a customer above.</p>
        </Empty>
      )}
    </>
  )
}

interface Round {
  /** Another number: look again. */
  readonly round: number
}

const OUTCOMES = [
  ['applied', 'applied', '--good'],
  ['ignored', 'ignored', '--faint'],
  ['duplicate', 'repeated', '--link'],
  ['held', 'held', '--warn'],
  ['quarantined', 'quarantined', '--bad'],
  ['refused', 'refused', '--bad'],
  ['notStored', 'not stored', '--bad'],
] as const

type Deliveries = Schemas['Deliveries']

const ENDPOINT_COLUMNS: readonly Column<Deliveries['endpoints'][number]>[] = [
  { title: 'Endpoint', cell: ({ name }) => <Text>{name}</Text> },
  { title: 'Last event', cell: ({ lastEventAt }) => <Time at={lastEventAt} relative never="none so far" /> },
  {
    title: 'Usually every',
    cell: ({ usualIntervalMs: ms }) => (ms === null ? 'not known yet' : durationText(ms)),
  },
  {
    title: 'Silence',
    cell: ({ isUnusual, lastEventAt }) => {
      if (lastEventAt === null) return <Badge>waiting</Badge>
      if (!isUnusual) return <Badge tone="good">usual</Badge>
      return [<Badge tone="warn">unusual</Badge>, ' Check the sender, and the proxies on the way.']
    },
  },
]

function Deliveries({ round }: Round) {
  const deliveries = useGet('/deliveries', {}, round)
  return (
    <Section title="Deliveries in the last hour">
      <Answer query={deliveries}>
        {({ minutes, acknowledged: ms, endpoints }) => {
          const counts = OUTCOMES.map(([name, label, color]) => {
            const values = minutes.map((minute) => minute[name])
            const kind = name === 'applied' ? 'bars' : 'line'
            return { label, color, values, kind, total: values.reduce((sum, one) => sum + one, 0) } as const
          })
          const within = ms === null ? 'none so far' : `${ms.p50Ms} ms (half), ${ms.p99Ms} ms (99 %)`
          return (
            <>
              <Facts
                of={[
                  ...counts.map(({ label, total }) => [label, total] as const),
                  ['Acknowledged within', within],
                ]}
              />
              <DeliveryChart
                counts={counts.filter(({ total }) => total > 0)}
                last={minutes.at(-1)?.at ?? ''}
              />
              <Table
                caption="Endpoints"
                rows={endpoints}
                keyOf={({ name }) => name}
                columns={ENDPOINT_COLUMNS}
                empty="No endpoint of this environment is configured. Add one under endpoints in the config."
              />
            </>
          )
        }}
      </Answer>
    </Section>
  )
}

interface DeliveryChartProps {
  readonly counts: readonly (Series & { readonly total: number })[]
  /** The minute of the last value. */
  readonly last: string
}

function DeliveryChart({ counts, last }: DeliveryChartProps) {
  const [first] = counts
  if (first === undefined) return null
  // The daemon may have started a moment ago: before that, nothing is known.
  const unknown = Array<null>(60 - first.values.length).fill(null)
  return (
    <Chart
      summary={`Deliveries a minute: ${counts.map(({ label, total }) => `${total} ${label}`).join(', ')}.`}
      times={Array.from({ length: 60 }, (_, index) => Date.parse(last) + (index - 59) * 60_000)}
      series={counts.map((one) => ({ ...one, values: [...unknown, ...one.values] }))}
    />
  )
}

function Daemon({ round }: Round) {
  const status = useQuery((signal) => answerOf(api.GET('/status', { signal })), [], round)
  return (
    <Section title="Daemon">
      <Answer query={status}>
        {({ ready, notes, startedAt, version, queue, sync, job, database: { bytes } }) => (
          <>
            <Facts
              of={[
                ['State', <Badge tone={ready ? 'good' : 'bad'}>{ready ? 'ready' : 'not ready'}</Badge>],
                ['Running since', <Time at={startedAt} />],
                ['Version', version],
                ['Deliveries waiting', queue.deliveries],
                ['Database', bytes === null ? 'not readable now' : bytesText(bytes)],
                ['Work', job === null ? 'none' : `${job.name}: ${job.done} of ${job.total}`],
                ['Sync', sync === null ? 'not configured' : <SyncState {...sync} />],
              ]}
            />
            <ul class="notes">
              {notes.map((note) => (
                <li>
                  <Text>{note}</Text>
                </li>
              ))}
            </ul>
          </>
        )}
      </Answer>
    </Section>
  )
}

type Sync = NonNullable<Schemas['DaemonStatus']['sync']>

function SyncState({ paused, due, parked, unconfirmed, messages, unreachable }: Sync) {
  const waiting = [
    due > 0 && `${due} due`,
    parked > 0 && `${parked} wait for somebody`,
    unconfirmed > 0 && `${unconfirmed} removals held back`,
    messages > 0 && `${messages} messages waiting`,
    unreachable.length > 0 && `cannot reach ${unreachable.join(', ')}`,
  ].filter((one) => one !== false)
  return (
    <>
      <Badge tone={paused || unreachable.length > 0 ? 'warn' : 'good'}>{paused ? 'paused' : 'running'}</Badge>{' '}
      {waiting.join(', ')}
    </>
  )
}

const UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB']

export function bytesText(bytes: number): string {
  const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), UNITS.length - 1)
  return `${Math.round((bytes / 1000 ** power) * 10) / 10} ${UNITS[power]}`
}

const FINDING_COLUMNS: readonly Column<Schemas['Findings']['findings'][number]>[] = [
  { title: 'Level', cell: ({ level }) => <Badge>{level}</Badge> },
  { title: 'What', cell: ({ what }) => <Text>{what}</Text> },
  { title: 'Finding', cell: ({ detail }) => <Text>{detail}</Text> },
  { title: 'What to do', cell: ({ todo }) => <Text>{todo ?? ''}</Text> },
]

function Findings() {
  const doctor = useQuery((signal) => answerOf(api.GET('/doctor', { signal })), [])
  const again = <Button text="Check again" onClick={doctor.reload} isDisabled={doctor.isLoading} />
  return (
    <Section title="What the doctor found" aside={again}>
      <Answer query={doctor}>
        {({ findings }) => (
          <Table
            caption="Findings"
            rows={findings.filter(({ level }) => level !== 'ok')}
            keyOf={({ what, detail }) => `${what} ${detail}`}
            columns={FINDING_COLUMNS}
            empty={`Nothing: all ${findings.length} checks are fine.`}
          />
        )}
      </Answer>
    </Section>
  )
}

const NO_BACKFILL = (
  <Empty>
    <p>
      None was run so far. A backfill reads the payments service's own records, and stores what no webhook
      told: <code>latchkey backfill</code>.
    </p>
  </Empty>
)

function LastBackfill() {
  const backfills = useGet('/backfills', { limit: 1 })
  return (
    <Section title="Last backfill">
      <Answer query={backfills}>
        {({ items: [last] }) =>
          last === undefined ? (
            NO_BACKFILL
          ) : (
            <Facts
              of={[
                ['State', <Badge>{last.state}</Badge>],
                ['Began', <Time at={last.startedAt} />],
                ['Ended', <Time at={last.endedAt} never="still running" />],
                ['Read', last.progress.read],
                ['Stored', last.summary?.stored.total ?? 'not known yet'],
                ['Different, and no event says why', last.summary?.differences.total ?? 'not known yet'],
                ...(last.reason === null ? [] : [['Why it ended', <Text>{last.reason}</Text>] as const]),
              ]}
            />
          )
        }
      </Answer>
    </Section>
  )
}
