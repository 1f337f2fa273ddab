/* Who should be, and who is, a member of which role or group, and what that waits for. */

import { answerOf, api, type Environment, type Schemas } from '../api.js'
import { setParameters } from '../router.js'
import { useSession } from '../session.js'
import { Ask } from '../shared/ask.js'
import { useFilter } from '../shared/filters.js'
import { Go } from '../shared/links.js'
import { useGet, useList } from '../shared/list.js'
import { Button, Listing, Title } from '../shared/page.js'
import { Badge } from '../shared/show.js'
import { Text } from '../shared/text.js'
import { CustomerLink } from '../shared/things.js'
import { Time } from '../shared/time.js'
import { toast } from '../shared/toast.js'

type Membership = Schemas['Membership']
type State = Membership['state']

export const STATES: Readonly<Record<State, string>> = {
  settled: 'as it should be',
  due: 'will be called at once',
  retrying: 'a call failed, and is made again by itself',
  waiting: 'waits for the customer, for example to join',
  parked: 'waits for you: mend the cause, then retry',
  unconfirmed: 'a removal that waits for your approval',
}

const IS = { member: 'a member', absent: 'no member', unknown: 'not known' } as const

/** @param body as of `POST /sync/run` */
export async function runSync(
  environment: Environment,
  body: { readonly confirm?: string; readonly retry?: Partial<Pick<Membership, 'target' | 'customerId'>> },
): Promise<void> {
  const ran = await answerOf(api.POST('/sync/run', { params: { query: { environment } }, body }))
  if (!('given' in ran)) return toast('It takes longer than 20 seconds, and goes on by itself.')
  const { paused, leads, given, taken, failed, parked } = ran
  if (paused) return toast('No call was made: sync is paused. Resume it first.', 'bad')
  if (!leads) return toast('Another instance makes the calls: it does this in a moment.')
  const bad = failed + parked
  toast(`${given} given, ${taken} taken${bad > 0 ? `, ${bad} failed` : ''}.`, bad > 0 ? 'bad' : 'good')
}

export function Memberships() {
  const { targets } = useSession()
  const filter = useFilter(['target', 'state', 'customerId'])
  const { customerId } = filter
  const pages = useList('/sync/memberships', filter)
  const stopped = useStopped()
  return (
    <>
      <Title text="Roles and groups">
        <Go to="/sync" text="Sync and webhooks" />
      </Title>
      <Listing
        title="Memberships"
        fields={[
          { label: 'Role or group', name: 'target', options: targets },
          { label: 'State', name: 'state', options: Object.keys(STATES) },
        ]}
        aside={
          customerId !== undefined && (
            <Button text={`Of ${customerId}: show all`} onClick={() => setParameters({ customerId: null })} />
          )
        }
        pages={pages}
        keyOf={({ target, accountId }) => `${target} ${accountId}`}
        columns={[
          { title: 'Customer', cell: (one) => <CustomerLink id={one.customerId} /> },
          { title: 'Account', cell: ({ accountId }) => <Text>{accountId}</Text> },
          { title: 'Role or group', cell: ({ target }) => <Text>{target}</Text> },
          { title: 'Should be', cell: ({ desired }) => (desired ? IS.member : IS.absent) },
          { title: 'Since', cell: ({ desiredSince }) => <Time at={desiredSince} /> },
          { title: 'Is', cell: ({ applied }) => IS[applied] },
          { title: 'State', cell: ({ state }) => <Badge>{state}</Badge> },
          { title: 'Why', cell: (one) => <Why of={one} stopped={stopped(one)} /> },
          { title: 'Next attempt', cell: ({ nextAttemptAt }) => <Time at={nextAttemptAt} never="" /> },
          { title: 'Retry', cell: (one) => <Retry of={one} stopped={stopped(one)} onClose={pages.reload} /> },
        ]}
        empty="None matches. Customers get one with access to a product that has a role or group, and an account there."
      />
    </>
  )
}

/** Why no call is made for a role or group, or for its whole platform; null: calls are made. */
function useStopped(): (of: Membership) => string | null {
  const { data } = useGet('/sync')
  return ({ target }) => {
    const isOf = ({ platform }: { readonly platform: string }) => target.startsWith(`${platform}:`)
    const own = data?.targets.find((one) => one.target === target)?.reason
    const { message } = own ?? data?.platforms.find(isOf)?.reason ?? {}
    return message ?? data?.unreachable.find(isOf)?.reason ?? null
  }
}

interface WhyProps {
  readonly of: Membership
  readonly stopped: string | null
}

function Retry({ of, stopped, onClose }: WhyProps & { readonly onClose: () => void }) {
  const { environment, target, customerId, desired, state } = of
  // It does something about all others; about `due` where calls are stopped.
  if (state === 'settled' || state === 'unconfirmed') return null
  return (
    <Ask
      act="Retry"
      name={`Retry ${customerId}`}
      look="small"
      title={`Retry ${customerId} in ${target}`}
      says={`The platform is called now, to ${desired ? 'give' : 'take away'} it. It fails again if its cause is still there:`}
      onConfirm={() => runSync(environment, { retry: { target, customerId } })}
      onClose={onClose}
    >
      <Why of={of} stopped={stopped} />
    </Ask>
  )
}

function Why({ of: { state, parked, lastError, attempts }, stopped }: WhyProps) {
  const isCalled = state === 'due' || state === 'retrying'
  const failure = parked?.message ?? (isCalled ? stopped : null) ?? lastError?.message
  if (failure === undefined || state === 'settled') return STATES[state]
  return <Text>{attempts > 0 ? `${failure} (${attempts} attempts)` : failure}</Text>
}
