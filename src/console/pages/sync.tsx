/* Roles, groups and outbound webhooks: how far they follow access, and what waits for somebody. */

import { useState } from 'preact/hooks'
import { answerOf, api, type Environment, type Schemas } from '../api.js'
import { useSession } from '../session.js'
import { Ask } from '../shared/ask.js'
import { Select } from '../shared/filters.js'
import { Go } from '../shared/links.js'
import { useGet } from '../shared/list.js'
import { Button, Listing, Refresh, Title } from '../shared/page.js'
import { Answer, Badge, type Column, Facts, Section } from '../shared/show.js'
import { Text } from '../shared/text.js'
import { Time } from '../shared/time.js'
import { toast } from '../shared/toast.js'
import { useQuery } from '../shared/use-query.js'
import { runSync, STATES } from './memberships.js'

type Status = Schemas['SyncStatus']

export function Sync() {
  const status = useGet('/sync')
  const { data, reload } = status
  return (
    <>
      <Title text="Sync and webhooks">
        {data !== undefined && (
          <Badge tone={data.paused ? 'warn' : 'good'}>{data.paused ? 'paused' : 'running'}</Badge>
        )}
        <Refresh of={status} />
        <Run onClose={reload} />
        {data !== undefined && <Pausing isPaused={data.paused} onClose={reload} />}
      </Title>
      <Answer query={status}>
        {(shown) => (
          <div class="sections">
            {shown.unconfirmed > 0 && <HeldRemovals onClose={reload} />}
            <Platforms of={shown} />
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

/** What would be called now: what waits for an approval, and what does not. */
async function planOf(environment: Environment, signal: AbortSignal) {
  const plan = await answerOf(api.GET('/sync/plan', { params: { query: { environment } }, signal }))
  const held = plan.calls.filter(({ needsConfirmation }) => needsConfirmation)
  return { ...plan, held, due: plan.calls.filter(({ needsConfirmation }) => !needsConfirmation) }
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

function Run({ onClose }: ActProps) {
  const { environment } = useSession()
  return (
    <Ask
      label="Run now…"
      title={`Run sync now in ${environment}`}
      act="Run"
      says="Sync runs by itself. Run it now after you have mended what it waited for."
      preview={async (signal) => {
        const { paused, due, held } = await planOf(environment, signal)
        const gives = due.filter(({ action }) => action === 'give').length
        return (
          <p>
            {counted(due.length, 'call')}: {gives} to give, {due.length - gives} to take away.{' '}
            {held.length > 0 && `Not made are removals that wait for an approval: ${held.length}. `}
            {paused && 'Sync is paused, so that no call is made before you resume it.'}
          </p>
        )
      }}
      onConfirm={() => runSync(environment, {})}
      onClose={onClose}
    />
  )
}

const PAUSES =
  'No role, group or webhook is called, live and in the sandbox, until somebody resumes. What is due is kept.'
const RESUMES = 'All that became due meanwhile is called now, live and in the sandbox.'

function Pausing({ isPaused, onClose }: ActProps & { readonly isPaused: boolean }) {
  if (!useSession().may('admin', 'ofBoth')) return null
  return (
    <Ask
      act={isPaused ? 'Resume' : 'Pause'}
      title={isPaused ? 'Resume sync' : 'Pause sync'}
      isDangerous={!isPaused}
      says={isPaused ? RESUMES : PAUSES}
      onConfirm={async () => {
        await answerOf(api.POST(isPaused ? '/sync/resume' : '/sync/pause', { body: {} }))
      }}
      onClose={onClose}
    />
  )
}

/** So many customers are named before it is approved. */
const NAMED = 20

function customersOf(calls: readonly { readonly customerId: string }[]): string {
  const more = calls.length > NAMED ? ` and ${calls.length - NAMED} more` : ''
  const named = calls.slice(0, NAMED).map(({ customerId }) => customerId)
  return `${named.join(', ')}${more}`
}

function HeldRemovals({ onClose }: ActProps) {
  const { environment } = useSession()
  const [hash, setHash] = useState<string | null>(null)
  const preview = async (signal: AbortSignal) => {
    const { held, hash: shown } = await planOf(environment, signal)
    setHash(held.length === 0 ? null : shown)
    if (held.length === 0) return <p>No removal waits in {environment} now. Look at the other environment.</p>
    const targets = [...Map.groupBy(held, ({ target }) => target)]
    return (
      <>
        <strong>{counted(held.length, 'removal')}</strong>
        <Facts of={targets.map(([target, calls]) => [target, <Text>{customersOf(calls)}</Text>])} />
        <p>{`This is the plan ${shown}. If it is another one once you confirm, nothing is removed.`}</p>
      </>
    )
  }
  const approve = (
    <Ask
      label="Look and approve…"
      look="danger"
      title={`Remove members in ${environment}`}
      act="Remove them"
      isDangerous
      preview={preview}
      isReady={hash !== null}
      onConfirm={() => runSync(environment, { confirm: hash ?? '' })}
      onClose={onClose}
    />
  )
  return (
    <Section title="Removals that wait for you" aside={approve}>
      <p>
        They are more at once than <code>sync.removals</code> allows without somebody who looks. If a policy
        or a mistake causes them, mend that, and they go away.{' '}
        <Go to="/sync/memberships" with={{ state: 'unconfirmed' }} text={`See them in ${environment}`} />
      </p>
    </Section>
  )
}

function Platforms({ of: { unreachable, platforms } }: { readonly of: Status }) {
  const refusing = platforms.filter(({ state }) => state !== 'ok')
  return (
    <Listing
      title="Platforms"
      caption="Platforms that do not take calls"
      rows={[
        ...unreachable.map((one) => ({ ...one, state: 'unreachable', until: null })),
        ...refusing.map(({ reason, ...one }) => ({ ...one, since: null, reason: reason?.message ?? '' })),
      ]}
      columns={[
        { title: 'Platform', cell: ({ platform }) => <Text>{platform}</Text> },
        { title: 'State', cell: ({ state }) => <Badge tone="bad">{state}</Badge> },
        { title: 'Since', cell: ({ since }) => <Time at={since} never="" /> },
        { title: 'Why', cell: ({ reason }) => <Text>{reason}</Text> },
        { title: 'Tried again', cell: ({ until }) => <Time at={until} never="by itself" /> },
      ]}
      empty="All take calls, as far as they were called."
    />
  )
}

type Target = Status['targets'][number]
type State = keyof Target['memberships']

const toMemberships = (target: string, text: string, state?: State) => (
  <Go to="/sync/memberships" with={{ target, state }} text={text} title={state && STATES[state]} />
)

/** How many of each are in a state. */
const countOf = (state: State): Column<Target> => ({
  title: state,
  isNumber: true,
  cell: ({ target, memberships: { [state]: count } }) =>
    count === 0 ? 0 : toMemberships(target, String(count), state),
})

function Targets({ of }: { readonly of: readonly Target[] }) {
  return (
    <Listing
      title="Roles and groups"
      caption="Roles and groups, with how many memberships are in which state"
      rows={of}
      columns={[
        { title: 'Role or group', cell: ({ target }) => toMemberships(target, target) },
        { title: 'Calls', cell: ({ state }) => <Badge>{state}</Badge> },
        { title: 'Why', cell: ({ reason }) => <Text>{reason?.message ?? ''}</Text> },
        { title: 'Tried again', cell: ({ until }) => <Time at={until} never="" /> },
        ...(Object.keys(STATES) as State[]).map(countOf),
      ]}
      empty="No role or group follows access here. Add `targets` to a product in the config and `sync` with the token of a bot, then run `latchkey reload`."
    />
  )
}

type Webhook = Status['webhooks'][number]

function stateOf({ disabled, failed, waiting, lastError }: Webhook) {
  const isOk = !disabled && failed === 0 && (waiting === 0 || lastError === null)
  return <Badge tone={isOk ? 'good' : 'warn'}>{disabled ? 'disabled' : isOk ? 'ok' : 'failing'}</Badge>
}

function Webhooks({ of }: { readonly of: readonly Webhook[] }) {
  const mayTest = useSession().may('admin', 'ofBoth')
  const messages = (text: string, webhook: string, status?: 'failed') => (
    <Go to="/sync/messages" with={{ webhook, status }} text={text} />
  )
  return (
    <Listing
      title="Outbound webhooks"
      aside={<Go to="/sync/messages" text="All messages" />}
      rows={of}
      keyOf={({ id }) => id}
      columns={[
        { title: 'Address', cell: ({ id }) => messages(id, id) },
        { title: 'Where', cell: ({ origin }) => <Text>{origin}</Text> },
        { title: 'State', cell: stateOf },
        { title: 'Waiting', isNumber: true, cell: ({ waiting }) => waiting },
        { title: 'Waiting since', cell: ({ oldestWaitingAt }) => <Time at={oldestWaitingAt} never="" /> },
        { title: 'Failed', isNumber: true, cell: ({ id, failed }) => messages(String(failed), id, 'failed') },
        { title: 'Last delivered', cell: ({ lastDeliveredAt }) => <Time at={lastDeliveredAt} /> },
        { title: 'Last error', cell: ({ lastError }) => <Text>{lastError?.reason ?? ''}</Text> },
        { title: 'Test', cell: ({ id }) => mayTest && <SendTest webhook={id} /> },
      ]}
      empty="Changes of access go nowhere. Add an address to `sync.webhooks` in the config, with a secret, then run `latchkey reload`."
    />
  )
}

const TYPES = ['entitlement.granted', 'entitlement.changed', 'entitlement.revoked'] as const

function SendTest({ webhook }: { readonly webhook: string }) {
  const { environment } = useSession()
  const [type, setType] = useState<string>(TYPES[0])
  return (
    <Ask
      label="Test…"
      name={`Test ${webhook}`}
      look="small"
      title={`Send a test message to ${webhook}`}
      act="Send"
      says="The message is about nobody, and says that it is a test. It is signed as all others are."
      onConfirm={async () => {
        const body = { type: TYPES.find((one) => one === type) ?? TYPES[0], environment }
        const sent = { params: { path: { webhook } }, body }
        const test = await answerOf(api.POST('/sync/webhooks/{webhook}/test', sent))
        const said = `to ${webhook}: ${test.error ?? `it answered ${test.status}`}, after ${test.ms} ms.`
        if (test.delivered) toast(`Delivered ${said}`)
        else toast(`Not delivered ${said}`, 'bad')
      }}
    >
      <Select label="Type" options={TYPES} value={type} onChange={setType} />
    </Ask>
  )
}

/** What the platforms say about the bots. Only asked where somebody wants it: it calls them. */
function Check() {
  const { environment } = useSession()
  const [count, setCount] = useState(0)
  const checked = useQuery(
    async (signal) =>
      count === 0
        ? { findings: [] }
        : answerOf(api.GET('/sync/check', { params: { query: { environment } }, signal })),
    [environment, count],
  )
  return (
    <Answer query={checked}>
      {({ findings }) => (
        <Listing
          title="Check"
          caption="What the platforms say"
          aside={<Button text="Check now" onClick={() => setCount(count + 1)} />}
          rows={findings}
          columns={[
            { title: 'About', cell: ({ about }) => <Text>{about}</Text> },
            { title: 'Finding', cell: ({ ok }) => <Badge>{ok ? 'ok' : 'fail'}</Badge> },
            { title: 'What it says', cell: ({ message }) => <Text>{message}</Text> },
          ]}
          empty={
            count === 0
              ? 'Asks each platform whether the bot may give and take each role and group. It changes nothing.'
              : 'There is nothing to check: no role, group or webhook is configured here.'
          }
        />
      )}
    </Answer>
  )
}
