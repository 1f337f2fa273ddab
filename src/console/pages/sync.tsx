/* Roles, groups and outbound webhooks: how far they follow access, and what waits for somebody. */

import { useState } from 'preact/hooks'
import { type Environment, get, type Schemas, send } from '../api.js'
import { useSession } from '../session.js'
import { Ask } from '../shared/ask.js'
import { Go } from '../shared/links.js'
import { counted } from '../shared/plain.js'
import { Answer, Badge, Button, Facts, Section, Title } from '../shared/show.js'
import { type Columns, Listing, named } from '../shared/table.js'
import { Time } from '../shared/text.js'
import { toast } from '../shared/toast.js'
import { useGet, useQuery } from '../shared/use-query.js'
import { STATES, useRunSync } from './memberships.js'

type Status = Schemas['SyncStatus']
type Target = Status['targets'][number]
type Webhook = Status['webhooks'][number]
type State = keyof Target['memberships']

const countOf = ({ target, memberships }: Target, state: State) => {
  const [count, title] = [String(memberships[state]), STATES[state]]
  return <Go to="/sync/memberships" with={{ target, state }} text={count} title={title} />
}

const ALL = Object.keys(STATES) as State[]
const TARGETS: Columns<Target> = {
  ...named({ target: 'Role or group', state: 'Calls' }),
  Why: ({ reason }) => reason?.message,
  ...named({ until: 'Tried again' }),
  ...Object.fromEntries(ALL.map((state) => [state, (one: Target) => countOf(one, state)])),
}

const messages = (text: string, webhook: string, status?: 'failed') => (
  <Go to="/sync/messages" with={{ webhook, status }} text={text} />
)

const WEBHOOKS: Columns<Webhook> = {
  Address: ({ id }) => messages(id, id),
  ...named({ origin: 'Where' }),
  State({ disabled, failed, waiting, lastError }) {
    const isOk = !disabled && failed === 0 && (waiting === 0 || lastError === null)
    return <Badge text={disabled ? 'disabled' : isOk ? 'ok' : 'failing'} tone={isOk ? 'good' : 'warn'} />
  },
  ...named({ waiting: 'Waiting', oldestWaitingAt: 'Waiting since', lastDeliveredAt: 'Last delivered' }),
  Failed: ({ id, failed }) => messages(String(failed), id, 'failed'),
  'Last error': ({ lastError }) => lastError?.reason,
  Test: ({ id }) => <SendTest webhook={id} />,
}

const PLATFORMS: Columns<Status['platforms'][number] | Status['unreachable'][number]> = {
  Platform: ({ platform }) => platform,
  State: (one) => <Badge text={'state' in one ? one.state : 'unreachable'} tone="bad" />,
  Since: (one) => 'since' in one && <Time at={one.since} />,
  Why: ({ reason }) => (typeof reason === 'string' ? reason : reason?.message),
  'Tried again': (one) => <Time at={'until' in one ? one.until : null} never="by itself" />,
}

export function Page() {
  const status = useGet('/sync')
  const isPaused = status.data?.paused
  return (
    <>
      <Title title="Sync and webhooks">
        {isPaused === false && <Badge text="running" tone="good" />}
        {isPaused && <Badge text="paused" />}
        <Run />
        {isPaused !== undefined && <Pausing act={isPaused ? 'Resume' : 'Pause'} />}
      </Title>
      <Answer query={status}>
        {({ unconfirmed, targets, webhooks, platforms, unreachable }) => (
          <>
            {unconfirmed > 0 && <HeldRemovals />}
            <Listing
              title="Platforms"
              caption="Platforms that do not take calls"
              rows={[...unreachable, ...platforms.filter(({ state }) => state !== 'ok')]}
              columns={PLATFORMS}
              empty="All take calls, as far as they were called."
            />
            <Listing
              title="Roles and groups"
              caption="Roles and groups, with how many memberships are in which state"
              rows={targets}
              columns={TARGETS}
              empty="No role or group follows access here. Add `targets` to a product in the config and `sync` with the token of a bot, then run `latchkey reload`."
            />
            <Listing
              title="Outbound webhooks"
              aside={<Go to="/sync/messages" text="All messages" />}
              rows={webhooks}
              keyOf={({ id }) => id}
              columns={WEBHOOKS}
              empty="Changes of access go nowhere. Add an address to `sync.webhooks` in the config, with a secret, then run `latchkey reload`."
            />
          </>
        )}
      </Answer>
      <Check />
    </>
  )
}

/** What would be called now: what waits for an approval, and what does not. */
async function planOf(environment: Environment, signal: AbortSignal) {
  const plan = await get('/sync/plan', { environment }, signal)
  const split = Object.groupBy(plan.calls, (one) => (one.needsConfirmation ? 'held' : 'due'))
  return { ...plan, held: split.held ?? [], due: split.due ?? [] }
}

function Run() {
  const { environment } = useSession()
  const run = useRunSync()
  return (
    <Ask
      label="Run now…"
      title={`Run sync now in ${environment}`}
      act="Run"
      says="Sync runs by itself. Run it now after you have mended what it waited for."
      preview={async (_, signal) => {
        const { paused, due, held } = await planOf(environment, signal)
        const gives = due.filter(({ action }) => action === 'give').length
        return [
          `${counted(due.length, 'call')}: ${gives} to give, ${due.length - gives} to take away. `,
          held.length > 0 && `Not made are removals that wait for an approval: ${held.length}. `,
          paused && 'Sync is paused, so that no call is made before you resume it.',
        ]
      }}
      onConfirm={() => run({})}
    />
  )
}

const PAUSING = {
  Pause: 'Nothing is called, live and in the sandbox, until somebody resumes. What becomes due is kept.',
  Resume: 'All that became due meanwhile is called now, live and in the sandbox.',
} as const

function Pausing({ act }: { readonly act: keyof typeof PAUSING }) {
  const path = act === 'Pause' ? '/sync/pause' : '/sync/resume'
  if (!useSession().may('admin', 'ofBoth')) return null
  const onConfirm = () => send('post', path, {}, {}).then(() => `${act}d.`)
  return <Ask act={act} title={`${act} sync`} says={PAUSING[act]} onConfirm={onConfirm} />
}

/** So many customers are named before it is approved. */
const NAMED = 20

function HeldRemovals() {
  const { environment, targetName } = useSession()
  const [hash, setHash] = useState<string | null>(null)
  const run = useRunSync()
  const preview = async (_: unknown, signal: AbortSignal) => {
    const { held, hash: shown } = await planOf(environment, signal)
    setHash(held.length === 0 ? null : shown)
    if (held.length === 0) return `No removal waits in ${environment} now. Look at the other environment.`
    const targets = [...Map.groupBy(held, ({ target }) => target)].map(([target, calls]) => {
      const more = calls.length > NAMED ? ` and ${calls.length - NAMED} more` : ''
      const named = calls.slice(0, NAMED).map(({ customerId }) => customerId)
      return [targetName(target), named.join(', ') + more] as const
    })
    return (
      <>
        <strong>{counted(held.length, 'removal')}</strong>
        <Facts of={targets} />
        <p>This is the plan {shown}. If it is another one once you confirm, nothing is removed.</p>
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
      isReady={() => hash !== null}
      onConfirm={() => run({ confirm: hash ?? '' })}
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

const TYPES = ['entitlement.granted', 'entitlement.changed', 'entitlement.revoked'] as const

function SendTest({ webhook }: { readonly webhook: string }) {
  const { environment, may } = useSession()
  if (!may('admin', 'ofBoth')) return null
  return (
    <Ask
      label="Test…"
      name={`Test ${webhook}`}
      look="small"
      title={`Send a test message to ${webhook}`}
      act="Send"
      says="The message is about nobody, and says that it is a test. It is signed as all others are."
      fields={() => [{ name: 'type', label: 'Type', options: TYPES, initial: TYPES[0] }]}
      onConfirm={async (values) => {
        const body = { type: TYPES.find((one) => one === values.type) ?? TYPES[0], environment }
        const test = await send('post', '/sync/webhooks/{webhook}/test', { webhook }, body)
        const said = `to ${webhook}: ${test.error ?? `it answered ${test.status}`}, after ${test.ms} ms.`
        toast(`${test.delivered ? 'Delivered' : 'Not delivered'} ${said}`, test.delivered ? 'good' : 'bad')
      }}
    />
  )
}

/** What the platforms say about the bots. Only asked where somebody wants it: it calls them. */
function Check() {
  const { environment } = useSession()
  const [count, setCount] = useState(0)
  const ask = (signal: AbortSignal) => get('/sync/check', { environment }, signal)
  const checked = useQuery(async (one) => (count === 0 ? { findings: [] } : ask(one)), [environment, count])
  return (
    <Answer query={checked}>
      {({ findings }) => (
        <Listing
          title="Check"
          caption="What the platforms say"
          aside={<Button text="Check now" onClick={() => setCount(count + 1)} />}
          rows={findings}
          columns={{
            ...named({ about: 'About', message: 'What it says' }),
            Finding: ({ ok }) => <Badge text={ok ? 'ok' : 'fail'} />,
          }}
          empty="Asks each platform whether the bot may give and take each role and group. It changes nothing."
        />
      )}
    </Answer>
  )
}
