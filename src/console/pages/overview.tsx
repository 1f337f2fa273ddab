/* What runs, and what needs somebody. */

import { useEffect } from 'preact/hooks'
import { type AnswerOf, get, refresh, type Schemas } from '../api.js'
import { useSession } from '../session.js'
import { Chart } from '../shared/chart.js'
import { useChanges } from '../shared/live.js'
import { counted } from '../shared/plain.js'
import { Answer, Badge, Button, Facts, Notes, type Of, Says, Section, Title } from '../shared/show.js'
import { type Columns, Listing, named, Table } from '../shared/table.js'
import { Time } from '../shared/text.js'
import { useGet, useQuery } from '../shared/use-query.js'

/** Access changes at once; what else changes is looked at so often. */
const AGAIN_MS = 15_000

export function Page() {
  const { environment, may } = useSession()
  const isLive = useChanges(may('read') ? environment : null, refresh)
  useEffect(() => {
    const timer = window.setInterval(() => !document.hidden && refresh(), AGAIN_MS)
    return () => window.clearInterval(timer)
  }, [])
  return (
    <>
      <Title title="Overview">
        {may('read') && <Badge text={isLive ? 'up to date' : 'connecting'} tone={isLive ? 'good' : 'warn'} />}
      </Title>
      <Section title="Deliveries in the last hour">
        <Answer query={useGet('/deliveries')}>{(data) => <Deliveries of={data} />}</Answer>
      </Section>
      {may('admin', 'ofBoth') && <Daemon />}
      {may('admin', 'ofBoth') && <Findings />}
      <Section title="Last backfill">
        <Answer query={useGet('/backfills', { limit: 1 })}>
          {({ items: [last] }) => (last === undefined ? NO_BACKFILL : <Backfill of={last} />)}
        </Answer>
      </Section>
    </>
  )
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

const ENDPOINTS: Columns<Schemas['Deliveries']['endpoints'][number]> = {
  Endpoint: ({ name }) => name,
  'Last event': ({ lastEventAt }) => <Time at={lastEventAt} relative never="none so far" />,
  'Usually every': ({ usualIntervalMs: ms }) => (ms ? counted(Math.ceil(ms / 60_000), 'minute') : 'unknown'),
  Silence: ({ isUnusual, lastEventAt }) => {
    if (lastEventAt === null) return <Badge text="waiting" />
    return isUnusual ? <Badge text="unusual" tone="warn" /> : <Badge text="usual" tone="good" />
  },
  'What to do': ({ isUnusual }) => isUnusual && 'Check the sender, and the proxies on the way.',
}

/** So many are shown, as far as the daemon has run for so long. */
const MINUTES = 60

function Deliveries({ of: { minutes, acknowledged: ms, endpoints } }: Of<Schemas['Deliveries']>) {
  const unknown = Array<null>(MINUTES - minutes.length).fill(null)
  const counts = OUTCOMES.map(([name, label, color]) => {
    const values = minutes.map((minute) => minute[name])
    const kind: 'bars' | 'line' = name === 'applied' ? 'bars' : 'line'
    const total = values.reduce((sum, one) => sum + one, 0)
    return { label, color, kind, total, values: [...unknown, ...values] }
  })
  const drawn = counts.filter(({ total }) => total > 0)
  const last = Date.parse(minutes.at(-1)?.at ?? '')
  const within = ms === null ? 'none so far' : `${ms.p50Ms} ms (half), ${ms.p99Ms} ms (99 %)`
  const since = `Counted since ${minutes[0]?.at}: the daemon knows none from before its start.`
  return (
    <>
      {unknown.length > 0 && <Says text={since} look="faint" />}
      <Facts
        of={[...counts.map(({ label, total }) => [label, total] as const), ['Acknowledged within', within]]}
      />
      {drawn.length > 0 && (
        <Chart
          summary={`Deliveries of the last hour by minute: ${drawn.map(({ label, total }) => `${total} ${label}`).join(', ')}.`}
          times={Array.from({ length: MINUTES }, (_, index) => last - (MINUTES - 1 - index) * 60_000)}
          series={drawn}
        />
      )}
      <Table
        caption="Endpoints"
        rows={endpoints}
        columns={ENDPOINTS}
        empty="No endpoint of this environment is configured. Add one under `endpoints` in the config."
      />
    </>
  )
}

function Daemon() {
  return (
    <Section title="Daemon">
      <Answer query={useGet('/status', { environment: null })}>
        {({ ready, notes, startedAt, version, queue, sync, job, database: { bytes } }) => (
          <>
            <Facts
              of={[
                ['State', ready ? 'ready' : 'not ready'],
                ['Running since', <Time key={2} at={startedAt} />],
                ['Version', version],
                ['Deliveries waiting', queue.deliveries],
                ['Database', bytes === null ? 'not readable now' : `${Math.ceil(bytes / 1_000_000)} MB`],
                ['Work', job === null ? 'none' : `${job.name}: ${job.done} of ${job.total}`],
                ['Sync', sync === null ? 'not configured' : syncText(sync)],
              ]}
            />
            <Notes of={notes} />
          </>
        )}
      </Answer>
    </Section>
  )
}

function syncText({ paused, ...sync }: NonNullable<Schemas['DaemonStatus']['sync']>): string {
  const { due, parked, unconfirmed, messages, unreachable } = sync
  const parts = [
    paused ? 'paused' : 'running',
    due > 0 && `${due} due`,
    parked > 0 && `${parked} wait for somebody`,
    unconfirmed > 0 && `${unconfirmed} removals held back`,
    messages > 0 && `${messages} messages waiting`,
    unreachable.length > 0 && `cannot reach ${unreachable.join(', ')}`,
  ]
  return parts.filter((one) => one !== false).join(', ')
}

/** Not asked for again by itself: it takes the daemon some work. */
function Findings() {
  const doctor = useQuery((signal) => get('/doctor', {}, signal), [])
  return (
    <Answer query={doctor}>
      {({ findings }) => (
        <Listing
          title="What the doctor found"
          aside={<Button text="Check again" onClick={doctor.reload} isDisabled={doctor.isLoading} />}
          rows={findings.filter(({ level }) => level !== 'ok')}
          columns={named({ level: 'Level', what: 'What', detail: 'Finding', todo: 'What to do' })}
          empty={`Nothing: all ${findings.length} checks are fine.`}
        />
      )}
    </Answer>
  )
}

const NO_BACKFILL =
  'None was run so far. A backfill reads the payments service’s own records, and stores what no webhook told: `latchkey backfill`.'

const Backfill = ({ of: last }: Of<AnswerOf<'/backfills'>['items'][number]>) => (
  <Facts
    of={[
      ['State', <Badge key={1} text={last.state} />],
      ['Began', <Time key={2} at={last.startedAt} />],
      ['Ended', <Time key={3} at={last.endedAt} never="still running" />],
      ['Read', last.progress.read],
      ['Stored', last.summary?.stored.total ?? 'not known yet'],
      ['Different, and no event says why', last.summary?.differences.total ?? 'not known yet'],
      ['Why it ended', last.reason ?? (last.endedAt === null ? 'still running' : 'all was read')],
    ]}
  />
)
