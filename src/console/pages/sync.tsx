/* Roles, groups and outbound webhooks: how far they follow access, and what waits for somebody. */

import { useState } from 'preact/hooks'
import { answerOf, api, type Environment, type Schemas } from '../api.js'
import { Link } from '../router.js'
import { useAddress, useSession } from '../session.js'
import { Confirm } from '../shared/confirm.js'
import { Answer, Badge, Empty, Facts, Section, Table } from '../shared/show.js'
import { Text } from '../shared/text.js'
import { Time } from '../shared/time.js'
import { toast } from '../shared/toast.js'
import { useQuery } from '../shared/use-query.js'
import { runSync, STATE_WORDS, STATES } from './memberships.js'

type Status = Schemas['SyncStatus']

type Act = 'run' | 'approve' | 'pause' | 'resume'

export function Sync() {
  const { environment, may } = useSession()
  const status = useQuery(
    (signal) => answerOf(api.GET('/sync', { params: { query: { environment } }, signal })),
    [environment],
  )
  const [act, setAct] = useState<Act | null>(null)
  const close = (): void => {
    setAct(null)
    status.reload()
  }
  const { data } = status
  return (
    <>
      <div class="title">
        <h1>Sync and webhooks</h1>
        {data !== undefined && (
          <Badge tone={data.paused ? 'warn' : 'good'}>{data.paused ? 'paused' : 'running'}</Badge>
        )}
        <button type="button" onClick={status.reload} disabled={status.isLoading}>
          Refresh
        </button>
        <button type="button" onClick={() => setAct('run')}>
          Run now…
        </button>
        {may('admin', 'ofBoth') && data !== undefined && (
          <button type="button" onClick={() => setAct(data.paused ? 'resume' : 'pause')}>
            {data.paused ? 'Resume…' : 'Pause…'}
          </button>
        )}
      </div>
      <Answer query={status}>
        {(shown) => (
          <div class="sections">
            <Outages status={shown} />
            {shown.unconfirmed > 0 && (
              <HeldRemovals count={shown.unconfirmed} approve={() => setAct('approve')} />
            )}
            <Targets status={shown} />
            <Webhooks status={shown} />
          </div>
        )}
      </Answer>
      <Check />
      {act === 'run' && <Run onClose={close} />}
      {act === 'approve' && <Approve onClose={close} />}
      {(act === 'pause' || act === 'resume') && <Pausing act={act} onClose={close} />}
    </>
  )
}

/** Only where there is one: a list of none would be read for nothing. */
function Outages({ status: { unreachable, platforms, leads, sweptAt } }: { readonly status: Status }) {
  const limited = platforms.filter(({ state }) => state !== 'ok')
  const since = new Map(unreachable.map(({ platform, since: at }) => [platform, at]))
  const rows = [
    ...unreachable.map(({ platform, reason }) => ({ platform, state: 'unreachable', reason, until: null })),
    ...limited.map(({ platform, state, until, reason }) => ({
      platform: platform as string,
      state: state as string,
      reason: reason?.message ?? '',
      until,
    })),
  ]
  return (
    <Section title="Platforms">
      {rows.length === 0 ? (
        <Facts
          of={[
            ['Reached', 'All answer, as far as they were called.'],
            ['Calls are made by', leads ? 'this instance' : 'another instance on this database'],
            ['All compared at', <Time at={sweptAt} />],
          ]}
        />
      ) : (
        <Table
          caption="Platforms that do not take calls"
          rows={rows}
          keyOf={({ platform, state }) => `${platform} ${state}`}
          columns={[
            { title: 'Platform', cell: ({ platform }) => <Text>{platform}</Text> },
            { title: 'State', cell: ({ state }) => <Badge tone="bad">{state}</Badge> },
            { title: 'Since', cell: ({ platform }) => <Time at={since.get(platform) ?? null} never="" /> },
            { title: 'Why', cell: ({ reason }) => <Text>{reason}</Text> },
            { title: 'Tried again', cell: ({ until }) => <Time at={until} never="by itself" /> },
          ]}
          empty={null}
        />
      )}
    </Section>
  )
}

function HeldRemovals({ count, approve }: { readonly count: number; readonly approve: () => void }) {
  const { environment } = useSession()
  const address = useAddress()
  return (
    <Section
      title="Removals that wait for you"
      aside={
        <button type="button" class="danger" onClick={approve}>
          Look and approve…
        </button>
      }
    >
      <p>
        So many removals at once are more than <code>sync.removals</code> allows without somebody who looks:{' '}
        {count} in all environments of your key. If a policy or a mistake causes them, mend that first, and
        they go away.{' '}
        <Link to={address('/sync/memberships', { state: 'unconfirmed' })}>See them in {environment}</Link>
      </p>
    </Section>
  )
}

function Targets({ status: { targets } }: { readonly status: Status }) {
  const address = useAddress()
  return (
    <Section title="Roles and groups">
      <Table
        caption="Roles and groups, with how many memberships are in which state"
        rows={targets}
        keyOf={({ environment, target }) => `${environment} ${target}`}
        columns={[
          {
            title: 'Role or group',
            cell: ({ target }) => (
              <Link to={address('/sync/memberships', { target })}>
                <Text>{target}</Text>
              </Link>
            ),
          },
          {
            title: 'Calls',
            cell: ({ state, reason, until }) => (
              <>
                <Badge>{state}</Badge> {reason !== null && <Text>{reason.message}</Text>}
                {until !== null && (
                  <>
                    {' '}
                    until <Time at={until} />
                  </>
                )}
              </>
            ),
          },
          ...STATES.map((state) => ({
            title: state,
            isNumber: true as const,
            cell: ({ target, memberships }: Status['targets'][number]) =>
              memberships[state] === 0 ? (
                <span class="faint">0</span>
              ) : (
                <Link to={address('/sync/memberships', { target, state })} title={STATE_WORDS[state]}>
                  {memberships[state]}
                </Link>
              ),
          })),
        ]}
        empty={
          <p>
            No role or group follows access here. Add <code>targets</code> to a product in the config and{' '}
            <code>sync</code> with the token of a bot, then run <code>latchkey reload</code>.
          </p>
        }
      />
    </Section>
  )
}

function Webhooks({ status: { webhooks } }: { readonly status: Status }) {
  const { may } = useSession()
  const address = useAddress()
  const [tested, setTested] = useState<string | null>(null)
  return (
    <Section title="Outbound webhooks" aside={<Link to={address('/sync/messages')}>All messages</Link>}>
      <Table
        caption="Addresses of the outbound webhooks"
        rows={webhooks}
        keyOf={({ id }) => id}
        columns={[
          {
            title: 'Address',
            cell: ({ id, origin }) => (
              <>
                <Link to={address('/sync/messages', { webhook: id })}>
                  <Text>{id}</Text>
                </Link>
                <br />
                <Text>{origin}</Text>
              </>
            ),
          },
          {
            title: 'State',
            cell: ({ disabled, failed, lastError }) => {
              if (disabled) return <Badge tone="warn">disabled</Badge>
              return failed > 0 || lastError !== null ? (
                <Badge tone="warn">has failed</Badge>
              ) : (
                <Badge>ok</Badge>
              )
            },
          },
          {
            title: 'Waiting',
            cell: ({ waiting, oldestWaitingAt }) => (
              <>
                {waiting}
                {oldestWaitingAt !== null && (
                  <>
                    , since <Time at={oldestWaitingAt} />
                  </>
                )}
              </>
            ),
          },
          {
            title: 'Failed',
            isNumber: true,
            cell: ({ id, failed }) =>
              failed === 0 ? (
                0
              ) : (
                <Link to={address('/sync/messages', { webhook: id, status: 'failed' })}>{failed}</Link>
              ),
          },
          { title: 'Last delivered', cell: ({ lastDeliveredAt }) => <Time at={lastDeliveredAt} /> },
          {
            title: 'Last error',
            cell: ({ lastError }) =>
              lastError !== null && (
                <>
                  <Text>{lastError.reason}</Text>, <Time at={lastError.at} />
                </>
              ),
          },
          {
            title: 'Test',
            cell: ({ id }) =>
              may('admin', 'ofBoth') && (
                <button type="button" class="small" aria-label={`Test ${id}`} onClick={() => setTested(id)}>
                  Test…
                </button>
              ),
          },
        ]}
        empty={
          <p>
            Changes of access go nowhere. Add an address to <code>sync.webhooks</code> in the config, with a
            secret, then run <code>latchkey reload</code>.
          </p>
        }
      />
      {tested !== null && <SendTest webhook={tested} onClose={() => setTested(null)} />}
    </Section>
  )
}

const TYPES = ['entitlement.granted', 'entitlement.changed', 'entitlement.revoked'] as const

function SendTest({ webhook, onClose }: { readonly webhook: string; readonly onClose: () => void }) {
  const { environment } = useSession()
  const [type, setType] = useState<(typeof TYPES)[number]>(TYPES[0])
  return (
    <Confirm
      title={`Send a test message to ${webhook}`}
      act="Send"
      reason="none"
      onConfirm={async () => {
        const sent = { params: { path: { webhook } }, body: { type, environment } }
        const { delivered, status, error, ms } = await answerOf(
          api.POST('/sync/webhooks/{webhook}/test', sent),
        )
        const said = error ?? `it answered ${status}`
        toast(
          delivered
            ? `Delivered to ${webhook} in ${ms} ms: ${said}.`
            : `Not delivered to ${webhook}: ${said}.`,
          delivered ? 'good' : 'bad',
        )
      }}
      onClose={onClose}
    >
      <p>The message is about nobody, and says that it is a test. It is signed as all others are.</p>
      <label class="field">
        <span>Type</span>
        <select
          value={type}
          onChange={({ currentTarget }) =>
            setType(TYPES.find((one) => one === currentTarget.value) ?? TYPES[0])
          }
        >
          {TYPES.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
    </Confirm>
  )
}

/** What the platforms say about the bots. Only asked where somebody wants it: it calls them. */
function Check() {
  const { environment } = useSession()
  const [count, setCount] = useState(0)
  const checked = useQuery(
    async (signal) =>
      count === 0 ? null : answerOf(api.GET('/sync/check', { params: { query: { environment } }, signal })),
    [environment, count],
  )
  return (
    <Section
      title="Check"
      aside={
        <button type="button" onClick={() => setCount(count + 1)} disabled={checked.isLoading}>
          Check now
        </button>
      }
    >
      <Answer query={checked}>
        {(answer) =>
          answer === null ? (
            <Empty>
              <p>
                Asks each platform whether the bot may give and take each role and group. It changes nothing.
              </p>
            </Empty>
          ) : (
            <Table
              caption="What the platforms say"
              rows={answer.findings}
              keyOf={({ about, message }) => `${about} ${message}`}
              columns={[
                { title: 'About', cell: ({ about }) => <Text>{about}</Text> },
                { title: 'Finding', cell: ({ ok }) => <Badge>{ok ? 'ok' : 'fail'}</Badge> },
                { title: 'What it says', cell: ({ message }) => <Text>{message}</Text> },
              ]}
              empty={<p>There is nothing to check: no role, group or webhook is configured here.</p>}
            />
          )
        }
      </Answer>
    </Section>
  )
}

interface ActProps {
  readonly onClose: () => void
}

const count = (number: number, one: string, many = `${one}s`): string =>
  `${number} ${number === 1 ? one : many}`

function Run({ onClose }: ActProps) {
  const { environment } = useSession()
  const [isRetry, setRetry] = useState(false)
  return (
    <Confirm
      title={`Run sync now in ${environment}`}
      act="Run"
      reason="none"
      preview={async (signal) => {
        const { paused, calls } = await planOf(environment, signal)
        const due = calls.filter(({ needsConfirmation }) => !needsConfirmation)
        return (
          <>
            <p>{due.length === 0 ? 'No call is due.' : `${count(due.length, 'call')}: ${kindsIn(due)}.`}</p>
            {due.length < calls.length && (
              <p>
                {count(calls.length - due.length, 'removal')} beside them wait for an approval, and are not
                made.
              </p>
            )}
            {paused && <p>Sync is paused, so that nothing is called before you resume it.</p>}
          </>
        )
      }}
      onConfirm={() => runSync(environment, isRetry ? { retry: {} } : {})}
      onClose={onClose}
    >
      <p>Sync runs by itself. Run it now after you have mended what it waited for.</p>
      <label class="check">
        <input
          type="checkbox"
          checked={isRetry}
          onChange={({ currentTarget }) => setRetry(currentTarget.checked)}
        />
        Also try again what waits, needs somebody or failed, calls and messages
      </label>
    </Confirm>
  )
}

type Call = Schemas['SyncPlan']['calls'][number]

const planOf = (environment: Environment, signal: AbortSignal) =>
  answerOf(api.GET('/sync/plan', { params: { query: { environment } }, signal }))

/** `2 would be given, 1 taken away`. */
function kindsIn(calls: readonly Call[]): string {
  const gives = calls.filter(({ action }) => action === 'give').length
  return `${gives} to give, ${calls.length - gives} to take away`
}

const NAMED = 20

function Approve({ onClose }: ActProps) {
  const { environment } = useSession()
  const [hash, setHash] = useState<string | null>(null)
  const [attempt, setAttempt] = useState(0)
  return (
    <Confirm
      title={`Remove members in ${environment}`}
      act="Remove them"
      isDangerous
      reason="none"
      about={[environment, attempt]}
      preview={async (signal) => {
        const plan = await planOf(environment, signal)
        const held = plan.calls.filter(({ needsConfirmation }) => needsConfirmation)
        setHash(held.length === 0 ? null : plan.hash)
        if (held.length === 0)
          return <p>No removal waits in {environment} now. Look at the other environment.</p>
        const targets = [...new Set(held.map(({ target }) => target))]
        return (
          <>
            <p>
              <strong>{count(held.length, 'member')}</strong> lose a role or group:
            </p>
            <ul>
              {targets.map((target) => (
                <li key={target}>
                  <Text>{target}</Text>: {held.filter((one) => one.target === target).length}
                </li>
              ))}
            </ul>
            <p>
              {held.slice(0, NAMED).map(({ customerId, target }, index) => (
                <span key={`${customerId} ${target}`}>
                  {index > 0 && ', '}
                  <Text>{customerId}</Text>
                </span>
              ))}
              {held.length > NAMED && ` and ${held.length - NAMED} more`}
            </p>
            <p>
              Plan <code>{plan.hash}</code>: if it is another one by the time that you confirm, nothing is
              removed.
            </p>
          </>
        )
      }}
      isReady={hash !== null}
      onConfirm={async () => {
        try {
          await runSync(environment, hash === null ? {} : { confirm: hash })
        } catch (error) {
          setAttempt(attempt + 1)
          throw error
        }
      }}
      onClose={onClose}
    />
  )
}

function Pausing({ act, onClose }: ActProps & { readonly act: 'pause' | 'resume' }) {
  const isPause = act === 'pause'
  return (
    <Confirm
      title={isPause ? 'Pause sync' : 'Resume sync'}
      act={isPause ? 'Pause' : 'Resume'}
      isDangerous={isPause}
      reason="none"
      onConfirm={async () => {
        await answerOf(
          isPause ? api.POST('/sync/pause', { body: {} }) : api.POST('/sync/resume', { body: {} }),
        )
        toast(isPause ? 'Paused: no call is made until you resume.' : 'Resumed.')
      }}
      onClose={onClose}
    >
      <p>
        {isPause
          ? 'No role, group or webhook is called, live and in the sandbox, until somebody resumes. What is due is kept.'
          : 'All that became due meanwhile is called now, live and in the sandbox.'}
      </p>
    </Confirm>
  )
}
