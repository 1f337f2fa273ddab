/* What runs, and what needs somebody. */

import { useEffect, useState } from 'preact/hooks'
import { answerOf, api, type Environment, type Schemas } from '../api.js'
import { useSession } from '../session.js'
import { Chart } from '../shared/chart.js'
import { useChanges } from '../shared/live.js'
import { Answer, Badge, Empty, Facts, Section, Table } from '../shared/show.js'
import { Text } from '../shared/text.js'
import { durationText, Time } from '../shared/time.js'
import { type Query, useQuery } from '../shared/use-query.js'

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
      <div class="title">
        <h1>Overview</h1>
        {live !== 'off' && (
          <Badge tone={live === 'on' ? 'good' : 'warn'}>{live === 'on' ? 'up to date' : 'connecting'}</Badge>
        )}
      </div>
      {may('admin') && <Deliveries environment={environment} round={round} />}
      {may('admin', 'ofBoth') && <Daemon round={round} />}
      {may('admin', 'ofBoth') && <Findings />}
      {may('admin') && <LastBackfill environment={environment} />}
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

/** Asks again with each round, and keeps what is shown meanwhile. */
function useRounds<Data>(query: Query<Data>, round: number): Query<Data> {
  const { reload } = query
  useEffect(() => {
    if (round > 0) reload()
  }, [round, reload])
  // It is only a moment old.
  return { ...query, isStale: query.problem !== null }
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

type Minute = Schemas['Deliveries']['minutes'][number]

const totalOf = (minutes: readonly Minute[], name: (typeof OUTCOMES)[number][0]): number =>
  minutes.reduce((sum, minute) => sum + minute[name], 0)

function Deliveries({ environment, round }: Round & { readonly environment: Environment }) {
  const query = useQuery(
    (signal) => answerOf(api.GET('/deliveries', { params: { query: { environment } }, signal })),
    [environment],
  )
  const deliveries = useRounds(query, round)
  return (
    <Section title="Deliveries in the last hour">
      <Answer query={deliveries}>
        {({ minutes, acknowledged, endpoints }) => (
          <>
            <Facts
              of={[
                ...OUTCOMES.map(([name, label]) => [label, totalOf(minutes, name)] as const),
                [
                  'Acknowledged within',
                  acknowledged === null
                    ? 'none so far'
                    : `${acknowledged.p50Ms} ms (half), ${acknowledged.p99Ms} ms (99 %)`,
                ],
              ]}
            />
            <DeliveryChart minutes={minutes} />
            <Silences endpoints={endpoints} />
          </>
        )}
      </Answer>
    </Section>
  )
}

function DeliveryChart({ minutes }: { readonly minutes: readonly Minute[] }) {
  const shown = OUTCOMES.filter(([name]) => totalOf(minutes, name) > 0)
  const last = Date.parse(minutes.at(-1)?.at ?? '')
  if (shown.length === 0) return null
  // The daemon may have started a moment ago: before that, nothing is known.
  const times = Array.from({ length: 60 }, (_, index) => last + (index - 59) * 60_000)
  const unknown = Array<null>(times.length - minutes.length).fill(null)
  return (
    <Chart
      summary={`Deliveries a minute: ${shown.map(([name, label]) => `${totalOf(minutes, name)} ${label}`).join(', ')}.`}
      times={times}
      series={shown.map(([name, label, color]) => ({
        label,
        color,
        values: [...unknown, ...minutes.map((minute) => minute[name])],
        kind: name === 'applied' ? 'bars' : 'line',
      }))}
    />
  )
}

function Silences({ endpoints }: { readonly endpoints: Schemas['Deliveries']['endpoints'] }) {
  return (
    <Table
      caption="Endpoints"
      rows={endpoints}
      keyOf={({ name }) => name}
      columns={[
        { title: 'Endpoint', cell: ({ name }) => <Text>{name}</Text> },
        {
          title: 'Last event',
          cell: ({ lastEventAt }) => <Time at={lastEventAt} relative never="none so far" />,
        },
        {
          title: 'Usually every',
          cell: ({ usualIntervalMs }) =>
            usualIntervalMs === null ? 'not known yet' : durationText(usualIntervalMs),
        },
        {
          title: 'Silence',
          cell: ({ isUnusual, lastEventAt }) =>
            isUnusual ? (
              <>
                <Badge tone="warn">unusual</Badge> Check the sender, and the proxies on the way.
              </>
            ) : (
              <Badge tone={lastEventAt === null ? 'plain' : 'good'}>
                {lastEventAt === null ? 'waiting' : 'usual'}
              </Badge>
            ),
        },
      ]}
      empty={
        <p>
          No endpoint of this environment is configured. Add one under <code>endpoints</code> in the config.
        </p>
      }
    />
  )
}

function Daemon({ round }: Round) {
  const status = useRounds(
    useQuery((signal) => answerOf(api.GET('/status', { signal })), []),
    round,
  )
  return (
    <Section title="Daemon">
      <Answer query={status}>
        {({ ready, notes, startedAt, version, queue, sync, job, database }) => (
          <>
            <Facts
              of={[
                ['State', <Badge tone={ready ? 'good' : 'bad'}>{ready ? 'ready' : 'not ready'}</Badge>],
                ['Running since', <Time at={startedAt} />],
                ['Version', version],
                ['Deliveries waiting', queue.deliveries],
                ['Database', database.bytes === null ? 'not readable now' : bytesText(database.bytes)],
                ['Work', job === null ? 'none' : `${job.name}: ${job.done} of ${job.total}`],
                ['Sync', sync === null ? 'not configured' : <SyncState sync={sync} />],
              ]}
            />
            {notes.length > 0 && (
              <ul class="notes">
                {notes.map((note) => (
                  <li key={note}>
                    <Text>{note}</Text>
                  </li>
                ))}
              </ul>
            )}
          </>
        )}
      </Answer>
    </Section>
  )
}

function SyncState({ sync }: { readonly sync: NonNullable<Schemas['DaemonStatus']['sync']> }) {
  const { paused, due, parked, unconfirmed, messages, unreachable } = sync
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

function Findings() {
  const doctor = useQuery((signal) => answerOf(api.GET('/doctor', { signal })), [])
  return (
    <Section
      title="What the doctor found"
      aside={
        <button type="button" onClick={doctor.reload} disabled={doctor.isLoading}>
          Check again
        </button>
      }
    >
      <Answer query={doctor}>
        {({ findings }) => (
          <Table
            caption="Findings"
            rows={findings.filter(({ level }) => level !== 'ok')}
            keyOf={({ what, detail }) => `${what} ${detail}`}
            columns={[
              { title: 'Level', cell: ({ level }) => <Badge>{level}</Badge> },
              { title: 'What', cell: ({ what }) => <Text>{what}</Text> },
              { title: 'Finding', cell: ({ detail }) => <Text>{detail}</Text> },
              { title: 'What to do', cell: ({ todo }) => todo !== null && <Text>{todo}</Text> },
            ]}
            empty={<p>Nothing: all {findings.length} checks are fine.</p>}
          />
        )}
      </Answer>
    </Section>
  )
}

function LastBackfill({ environment }: { readonly environment: Environment }) {
  const backfills = useQuery(
    (signal) => answerOf(api.GET('/backfills', { params: { query: { environment, limit: 1 } }, signal })),
    [environment],
  )
  return (
    <Section title="Last backfill">
      <Answer query={backfills}>
        {({ items: [last] }) =>
          last === undefined ? (
            <Empty>
              <p>
                None was run so far. A backfill reads the payments service's own records, and stores what no
                webhook told: <code>latchkey backfill</code>.
              </p>
            </Empty>
          ) : (
            <Facts
              of={[
                ['State', <Badge key="state">{last.state}</Badge>],
                ['Began', <Time key="began" at={last.startedAt} />],
                ['Ended', <Time key="ended" at={last.endedAt} never="still running" />],
                ['Read', last.progress.read],
                ['Stored', last.summary?.stored.total ?? 'not known yet'],
                ['Different, and no event says why', last.summary?.differences.total ?? 'not known yet'],
                ...(last.reason === null
                  ? []
                  : [['Why it ended', <Text key="why">{last.reason}</Text>] as const]),
              ]}
            />
          )
        }
      </Answer>
    </Section>
  )
}
