/* What runs, and what needs somebody. */

import { answerOf, api, type Schemas } from '../api.js'
import { type Session, useSession } from '../session.js'
import { useChanges } from '../shared/live.js'
import { Answer, Badge, Empty, Facts, Section, Table } from '../shared/show.js'
import { Text } from '../shared/text.js'
import { Time } from '../shared/time.js'
import { useQuery } from '../shared/use-query.js'

export function Overview() {
  const session = useSession()
  const { environment, may } = session
  const live = useChanges(may('read') ? environment : null, () => {})
  return (
    <>
      <div class="title">
        <h1>Overview</h1>
        {live !== 'off' && (
          <Badge tone={live === 'on' ? 'good' : 'warn'}>{live === 'on' ? 'live' : 'connecting'}</Badge>
        )}
      </div>
      {may('admin', 'ofBoth') && <Daemon />}
      {may('admin', 'ofBoth') && <Findings />}
      {may('admin') && <LastBackfill session={session} />}
      {!may('admin') && (
        <Empty>
          <p>The state of the daemon needs a key with the scope admin. Search for a customer above.</p>
        </Empty>
      )}
    </>
  )
}

function Daemon() {
  const status = useQuery((signal) => answerOf(api.GET('/status', { signal })), [])
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

function LastBackfill({ session: { environment } }: { readonly session: Session }) {
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
                ['State', <Badge>{last.state}</Badge>],
                ['Began', <Time at={last.startedAt} />],
              ]}
            />
          )
        }
      </Answer>
    </Section>
  )
}
