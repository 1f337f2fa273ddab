/* Roles, groups and outbound webhooks: how far they follow access, and what waits for somebody. */

import { useState } from 'preact/hooks'
import { answerOf, api, type Environment, type Schemas } from '../api.js'
import { useSession } from '../session.js'
import { Ask } from '../shared/ask.js'
import { Go } from '../shared/links.js'
import { Answer, Badge, Facts, Section, Table } from '../shared/show.js'
import { Text } from '../shared/text.js'
import { Time } from '../shared/time.js'
import { toast } from '../shared/toast.js'
import { useQuery } from '../shared/use-query.js'
import { runSync, STATE_WORDS, STATES } from './memberships.js'

type Status = Schemas['SyncStatus']

export function Sync() {
  const { environment, may } = useSession()
  const status = useQuery(
    (signal) => answerOf(api.GET('/sync', { params: { query: { environment } }, signal })),
    [environment],
  )
  const { data, reload, isLoading } = status
  return (
    <>
      <div class="title">
        <h1>Sync and webhooks</h1>
        {data !== undefined && (
          <Badge tone={data.paused ? 'warn' : 'good'}>{data.paused ? 'paused' : 'running'}</Badge>
        )}
        <button type="button" onClick={reload} disabled={isLoading}>
          Refresh
        </button>
        <Run onClose={reload} />
        {may('admin', 'ofBoth') && data !== undefined && <Pausing isPaused={data.paused} onClose={reload} />}
      </div>
      <Answer query={status}>
        {(shown) => (
          <div class="sections">
            {shown.unconfirmed > 0 && <HeldRemovals onClose={reload} />}
            <Platforms status={shown} />
            <Targets of={shown.targets} />
            <Webhooks of={shown.webhooks} />
          </div>
        )}
      </Answer>
      <Check />
    </>
  )
}

interface ActProps {
  readonly onClose: () => void
}

type Call = Schemas['SyncPlan']['calls'][number]

const planOf = (environment: Environment, signal: AbortSignal) =>
  answerOf(api.GET('/sync/plan', { params: { query: { environment } }, signal }))

const counted = (calls: readonly Call[], what: string): string =>
  `${calls.length} ${what}${calls.length === 1 ? '' : 's'}`

function Run({ onClose }: ActProps) {
  const { environment } = useSession()
  const [isRetry, setRetry] = useState(false)
  return (
    <Ask
      label="Run now…"
      title={`Run sync now in ${environment}`}
      act="Run"
      preview={async (signal) => {
        const { paused, calls } = await planOf(environment, signal)
        const due = calls.filter(({ needsConfirmation }) => !needsConfirmation)
        const gives = due.filter(({ action }) => action === 'give').length
        const held = calls.length - due.length
        return (
          <p>
            {counted(due, 'call')}: {gives} to give, {due.length - gives} to take away.{' '}
            {held > 0 && `Not made are removals that wait for an approval: ${held}. `}
            {paused && 'Sync is paused, so that no call is made before you resume it.'}
          </p>
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
        Also try again what waits, needs somebody or failed: calls and messages
      </label>
    </Ask>
  )
}

function Pausing({ isPaused, onClose }: ActProps & { readonly isPaused: boolean }) {
  return (
    <Ask
      label={isPaused ? 'Resume…' : 'Pause…'}
      title={isPaused ? 'Resume sync' : 'Pause sync'}
      act={isPaused ? 'Resume' : 'Pause'}
      isDangerous={!isPaused}
      onConfirm={async () => {
        await answerOf(
          isPaused ? api.POST('/sync/resume', { body: {} }) : api.POST('/sync/pause', { body: {} }),
        )
        toast(isPaused ? 'Resumed.' : 'Paused: no call is made until you resume.')
      }}
      onClose={onClose}
    >
      <p>
        {isPaused
          ? 'All that became due meanwhile is called now, live and in the sandbox.'
          : 'No role, group or webhook is called, live and in the sandbox, until somebody resumes. What is due is kept.'}
      </p>
    </Ask>
  )
}

/** So many customers are named before it is approved. */
const NAMED = 20

function HeldRemovals({ onClose }: ActProps) {
  const { environment } = useSession()
  const [hash, setHash] = useState<string | null>(null)
  const [attempt, setAttempt] = useState(0)
  const preview = async (signal: AbortSignal) => {
    const plan = await planOf(environment, signal)
    const held = plan.calls.filter(({ needsConfirmation }) => needsConfirmation)
    setHash(held.length === 0 ? null : plan.hash)
    if (held.length === 0) return <p>No removal waits in {environment} now. Look at the other environment.</p>
    const targets = [...new Set(held.map(({ target }) => target))]
    return (
      <>
        <strong>{counted(held, 'removal')}</strong>
        <ul>
          {targets.map((target) => (
            <li key={target}>
              <Text>{target}</Text>: {held.filter((one) => one.target === target).length}
            </li>
          ))}
        </ul>
        <p>
          <Text>{[...new Set(held.slice(0, NAMED).map(({ customerId }) => customerId))].join(', ')}</Text>
          {held.length > NAMED && ` and ${held.length - NAMED} more`}
        </p>
        <p>
          This is the plan <code>{plan.hash}</code>. If it is another one once you confirm, nothing is
          removed.
        </p>
      </>
    )
  }
  return (
    <Section
      title="Removals that wait for you"
      aside={
        <Ask
          label="Look and approve…"
          look="danger"
          title={`Remove members in ${environment}`}
          act="Remove them"
          isDangerous
          preview={preview}
          about={[environment, attempt]}
          isReady={hash !== null}
          onConfirm={async () => {
            if (hash === null) return
            try {
              await runSync(environment, { confirm: hash })
            } catch (error) {
              setAttempt(attempt + 1)
              throw error
            }
          }}
          onClose={onClose}
        />
      }
    >
      <p>
        They are more at once than <code>sync.removals</code> allows without somebody who looks. If a policy
        or a mistake causes them, mend that, and they go away.{' '}
        <Go to="/sync/memberships" with={{ state: 'unconfirmed' }}>
          {`See them in ${environment}`}
        </Go>
      </p>
    </Section>
  )
}

function Platforms({ status: { unreachable, platforms, leads, sweptAt } }: { readonly status: Status }) {
  const refusing = platforms.filter(({ state }) => state !== 'ok')
  const rows = [
    ...unreachable.map((one) => ({ ...one, state: 'unreachable', until: null })),
    ...refusing.map(({ reason, ...one }) => ({ ...one, since: null, reason: reason?.message ?? '' })),
  ]
  return (
    <Section title="Platforms">
      <Table
        caption="Platforms that do not take calls"
        rows={rows}
        keyOf={({ platform, state }) => `${platform} ${state}`}
        columns={[
          { title: 'Platform', cell: ({ platform }) => <Text>{platform}</Text> },
          { title: 'State', cell: ({ state }) => <Badge tone="bad">{state}</Badge> },
          { title: 'Since', cell: ({ since }) => <Time at={since} never="" /> },
          { title: 'Why', cell: ({ reason }) => <Text>{reason}</Text> },
          { title: 'Tried again', cell: ({ until }) => <Time at={until} never="by itself" /> },
        ]}
        empty={<p>All take calls, as far as they were called.</p>}
      />
      <Facts
        of={[
          ['Calls are made by', leads ? 'this instance' : 'another instance on this database'],
          ['All compared at', <Time at={sweptAt} />],
        ]}
      />
    </Section>
  )
}

function Targets({ of }: { readonly of: Status['targets'] }) {
  return (
    <Section title="Roles and groups">
      <Table
        caption="Roles and groups, with how many memberships are in which state"
        rows={of}
        keyOf={({ environment, target }) => `${environment} ${target}`}
        columns={[
          {
            title: 'Role or group',
            cell: ({ target }) => (
              <Go to="/sync/memberships" with={{ target }}>
                {target}
              </Go>
            ),
          },
          {
            title: 'Calls',
            cell: ({ state, reason, until }) => (
              <>
                <Badge>{state}</Badge> {reason !== null && <Text>{reason.message}</Text>}{' '}
                {until !== null && <Time at={until} />}
              </>
            ),
          },
          ...STATES.map((state) => ({
            title: state,
            isNumber: true as const,
            cell: ({ target, memberships: { [state]: count } }: Status['targets'][number]) =>
              count > 0 ? (
                <Go to="/sync/memberships" with={{ target, state }} title={STATE_WORDS[state]}>
                  {String(count)}
                </Go>
              ) : (
                0
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

type Webhook = Status['webhooks'][number]

function stateOf({ disabled, failed, waiting, lastError }: Webhook) {
  if (disabled) return <Badge tone="warn">disabled</Badge>
  const isFailing = failed > 0 || (waiting > 0 && lastError !== null)
  return <Badge tone={isFailing ? 'warn' : 'good'}>{isFailing ? 'failing' : 'ok'}</Badge>
}

function Webhooks({ of }: { readonly of: readonly Webhook[] }) {
  const { may } = useSession()
  return (
    <Section title="Outbound webhooks" aside={<Go to="/sync/messages">All messages</Go>}>
      <Table
        caption="Addresses of the outbound webhooks"
        rows={of}
        keyOf={({ id }) => id}
        columns={[
          {
            title: 'Address',
            cell: ({ id }) => (
              <Go to="/sync/messages" with={{ webhook: id }}>
                {id}
              </Go>
            ),
          },
          { title: 'Where', cell: ({ origin }) => <Text>{origin}</Text> },
          { title: 'State', cell: stateOf },
          { title: 'Waiting', isNumber: true, cell: ({ waiting }) => waiting },
          { title: 'Waiting since', cell: ({ oldestWaitingAt }) => <Time at={oldestWaitingAt} never="" /> },
          {
            title: 'Failed',
            isNumber: true,
            cell: ({ id, failed }) => (
              <Go to="/sync/messages" with={{ webhook: id, status: 'failed' }}>
                {String(failed)}
              </Go>
            ),
          },
          { title: 'Last delivered', cell: ({ lastDeliveredAt }) => <Time at={lastDeliveredAt} /> },
          {
            title: 'Last error',
            cell: ({ lastError }) => lastError !== null && <Text>{lastError.reason}</Text>,
          },
          { title: 'Test', cell: ({ id }) => may('admin', 'ofBoth') && <SendTest webhook={id} /> },
        ]}
        empty={
          <p>
            Changes of access go nowhere. Add an address to <code>sync.webhooks</code> in the config, with a
            secret, then run <code>latchkey reload</code>.
          </p>
        }
      />
    </Section>
  )
}

const TYPES = ['entitlement.granted', 'entitlement.changed', 'entitlement.revoked'] as const

function SendTest({ webhook }: { readonly webhook: string }) {
  const { environment } = useSession()
  const [type, setType] = useState<(typeof TYPES)[number]>(TYPES[0])
  return (
    <Ask
      label="Test…"
      name={`Test ${webhook}`}
      look="small"
      title={`Send a test message to ${webhook}`}
      act="Send"
      onConfirm={async () => {
        const sent = { params: { path: { webhook } }, body: { type, environment } }
        const { delivered, status, error, ms } = await answerOf(
          api.POST('/sync/webhooks/{webhook}/test', sent),
        )
        const said = `${error ?? `it answered ${status}`}, after ${ms} ms`
        if (delivered) toast(`Delivered to ${webhook}: ${said}.`)
        else toast(`Not delivered to ${webhook}: ${said}.`, 'bad')
      }}
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
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
    </Ask>
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
            <p>
              Asks each platform whether the bot may give and take each role and group. It changes nothing.
            </p>
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
