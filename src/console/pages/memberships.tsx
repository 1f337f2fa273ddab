/* Who should be, and who is, a member of which role or group, and what that waits for. */

import { answerOf, api, type Environment, type Schemas } from '../api.js'
import { setParameters } from '../router.js'
import { useSession } from '../session.js'
import { Ask } from '../shared/ask.js'
import { Choose, useFilter } from '../shared/choose.js'
import { CustomerLink, Go } from '../shared/links.js'
import { Badge, PagedTable, Section } from '../shared/show.js'
import { Text } from '../shared/text.js'
import { Time } from '../shared/time.js'
import { toast } from '../shared/toast.js'
import { usePages, useQuery } from '../shared/use-query.js'

type Membership = Schemas['Membership']
type State = Membership['state']

export const STATES = ['settled', 'due', 'retrying', 'waiting', 'parked', 'unconfirmed'] as const

export const STATE_WORDS: Readonly<Record<State, string>> = {
  settled: 'as it should be',
  due: 'will be called at once',
  retrying: 'a call failed, and is made again by itself',
  waiting: 'waits for the customer, for example to join',
  parked: 'waits for you: mend the cause, then retry',
  unconfirmed: 'a removal that waits for your approval',
}

/** What a retry does something about: `due`, where calls are stopped. */
const RETRIED: readonly State[] = ['due', 'retrying', 'waiting', 'parked']

/** @param body as of `POST /sync/run` */
export async function runSync(
  environment: Environment,
  body: {
    readonly confirm?: string
    readonly retry?: { readonly target?: string; readonly customerId?: string }
  },
): Promise<void> {
  const ran = await answerOf(api.POST('/sync/run', { params: { query: { environment } }, body }))
  if (!('given' in ran)) return toast('It takes longer than 20 seconds, and goes on by itself.')
  const { paused, leads, given, taken, failed, parked, waiting, messages } = ran
  if (paused) return toast('No call was made: sync is paused. Resume it first.', 'bad')
  if (!leads) return toast('Another instance makes the calls: it does this in a moment.')
  const others = [
    [failed, 'failed'],
    [parked, 'need somebody'],
    [waiting, 'wait for the customer'],
    [messages, 'messages to be sent again'],
  ] as const
  const made = others.map(([count, what]) => (count > 0 ? `, ${count} ${what}` : '')).join('')
  toast(`${given} given, ${taken} taken${made}.`, failed + parked > 0 ? 'bad' : 'good')
}

export function Memberships() {
  const { environment, targets } = useSession()
  const filter = useFilter(['target', 'state', 'customerId'])
  const stopped = useStopped()
  const pages = usePages(
    (cursor, signal) => {
      const query = { environment, limit: 50, ...filter, ...(cursor !== undefined && { cursor }) }
      return answerOf(api.GET('/sync/memberships', { params: { query }, signal }))
    },
    [environment, filter],
  )
  return (
    <>
      <div class="title">
        <h1>Roles and groups</h1>
        <Go to="/sync">Sync and webhooks</Go>
      </div>
      <Section
        title="Memberships"
        aside={
          <div class="filters">
            <Choose label="Role or group" name="target" options={targets.map((one) => [one, one])} />
            <Choose label="State" name="state" options={STATES.map((one) => [one, one])} />
            {filter.customerId !== undefined && (
              <button type="button" onClick={() => setParameters({ customerId: null })}>
                Of {filter.customerId}: show all customers
              </button>
            )}
            <button type="button" onClick={pages.reload} disabled={pages.isLoading}>
              Refresh
            </button>
          </div>
        }
      >
        <PagedTable
          pages={pages}
          caption="Memberships"
          keyOf={({ target, accountId }) => `${target} ${accountId}`}
          columns={[
            { title: 'Customer', cell: ({ customerId }) => <CustomerLink id={customerId} /> },
            { title: 'Account', cell: ({ accountId }) => <Text>{accountId}</Text> },
            { title: 'Role or group', cell: ({ target }) => <Text>{target}</Text> },
            {
              title: 'Should be',
              cell: ({ desired, desiredSince }) => (
                <>
                  {desired ? 'a member' : 'no member'}, since <Time at={desiredSince} />
                </>
              ),
            },
            {
              title: 'Is',
              cell: ({ applied }) =>
                ({ member: 'a member', absent: 'no member', unknown: 'not known' })[applied],
            },
            { title: 'State', cell: ({ state }) => <Badge>{state}</Badge> },
            { title: 'Why', cell: (one) => <Why of={one} stopped={stopped(one.target)} /> },
            {
              title: 'Retry',
              cell: (one) =>
                RETRIED.includes(one.state) && (
                  <Retry of={one} stopped={stopped(one.target)} onClose={pages.reload} />
                ),
            },
          ]}
          empty={
            <p>
              {Object.keys(filter).length > 0
                ? 'None matches. Choose another state, or another role or group.'
                : 'There is none: customers get one with access to a product that has a role or group, and an account there.'}
            </p>
          }
        />
      </Section>
    </>
  )
}

/** Why no call is made for a role or group, or for its whole platform; null: calls are made. */
function useStopped(): (target: string) => string | null {
  const { environment } = useSession()
  const { data } = useQuery(
    (signal) => answerOf(api.GET('/sync', { params: { query: { environment } }, signal })),
    [environment],
  )
  return (target) => {
    const own = data?.targets.find((one) => one.target === target)
    const platform = data?.platforms.find((one) => target.startsWith(`${one.platform}:`))
    const outage = data?.unreachable.find((one) => target.startsWith(`${one.platform}:`))
    return own?.reason?.message ?? platform?.reason?.message ?? outage?.reason ?? null
  }
}

interface WhyProps {
  readonly of: Membership
  readonly stopped: string | null
}

function Retry({ of: membership, stopped, onClose }: WhyProps & { readonly onClose: () => void }) {
  const { environment, target, customerId, desired } = membership
  return (
    <Ask
      label="Retry…"
      name={`Retry ${customerId}`}
      look="small"
      title={`Retry ${customerId} in ${target}`}
      act="Retry"
      onConfirm={() => runSync(environment, { retry: { target, customerId } })}
      onClose={onClose}
    >
      <p>
        The platform is called now, to {desired ? 'give' : 'take away'} it. It fails again if its cause is
        still there: <Why of={membership} stopped={stopped} />
      </p>
    </Ask>
  )
}

function Why({ of: { state, parked, lastError, nextAttemptAt, attempts }, stopped }: WhyProps) {
  const failure =
    parked?.message ?? (state === 'due' || state === 'retrying' ? stopped : null) ?? lastError?.message
  return (
    <>
      {failure === undefined || state === 'settled' ? STATE_WORDS[state] : <Text>{failure}</Text>}
      {nextAttemptAt !== null && state !== 'settled' && (
        <>
          {' '}
          Next attempt: <Time at={nextAttemptAt} />
          {attempts > 0 && `, after ${attempts} so far`}.
        </>
      )}
    </>
  )
}
