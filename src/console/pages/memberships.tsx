/* Who should be, and who is, a member of which role or group, and what that waits for. */

import { type Schemas, send } from '../api.js'
import { useSession } from '../session.js'
import { Ask } from '../shared/ask.js'
import { type Field, useFilter } from '../shared/fields.js'
import { Go } from '../shared/links.js'
import { Title } from '../shared/show.js'
import { Listing, named } from '../shared/table.js'
import { toast } from '../shared/toast.js'
import { useGet, useList } from '../shared/use-query.js'

type Membership = Schemas['Membership']

export const STATES: Readonly<Record<Membership['state'], string>> = {
  settled: 'as it should be',
  due: 'will be called at once',
  retrying: 'a call failed, and is made again by itself',
  waiting: 'waits for the customer, for example to join',
  parked: 'waits for you: mend the cause, then retry',
  unconfirmed: 'a removal that waits for your approval',
}

const IS = { member: 'a member', absent: 'no member', unknown: 'not known' } as const

type Run = { readonly confirm?: string; readonly retry?: Partial<Pick<Membership, 'target' | 'customerId'>> }

/** Has the calls made that are due, and says what came of it. */
export function useRunSync() {
  const { environment } = useSession()
  return async (body: Run): Promise<void> => {
    const ran = await send('post', '/sync/run', { environment }, body)
    if (!('given' in ran)) return toast('It takes longer than 20 seconds, and goes on by itself.')
    const { paused, leads, given, taken, failed, parked } = ran
    if (paused) return toast('No call was made: sync is paused. Resume it first.', 'bad')
    if (!leads) return toast('Another instance makes the calls: it does this in a moment.')
    const bad = failed + parked
    toast(`${given} given, ${taken} taken${bad > 0 ? `, ${bad} failed` : ''}.`, bad > 0 ? 'bad' : 'good')
  }
}

export function Page() {
  const { targets, targetName } = useSession()
  const { data } = useGet('/sync')
  const run = useRunSync()
  const options = targets.map((one) => [one, targetName(one)] as const)
  const fields: readonly Field[] = [
    { label: 'Role or group', name: 'target', options },
    { label: 'State', name: 'state', options: Object.keys(STATES) },
    { label: 'Customer', name: 'customerId' },
  ]
  /** Why no call is made for a role or group, or for its whole platform. */
  const stopOf = ({ target }: Membership): string | undefined => {
    const isOf = ({ platform }: { readonly platform: string }) => target.startsWith(`${platform}:`)
    const own = data?.targets.find((one) => one.target === target)?.reason
    const refusal = own ?? data?.platforms.find(isOf)?.reason
    return refusal?.message ?? data?.unreachable.find(isOf)?.reason
  }
  const whyOf = (one: Membership): string => {
    const { state, parked, lastError, attempts } = one
    const isCalled = state === 'due' || state === 'retrying'
    const failure = parked?.message ?? (isCalled ? stopOf(one) : undefined) ?? lastError?.message
    if (failure === undefined || state === 'settled') return STATES[state]
    return attempts > 0 ? `${failure} (${attempts} attempts)` : failure
  }
  const retryOf = (one: Membership) => (
    <Ask
      act="Retry"
      name={`Retry ${one.customerId}`}
      look="small"
      title={`Retry ${one.customerId} in ${targetName(one.target)}`}
      says={`The platform is called now, to ${one.desired ? 'give' : 'take away'} it. It fails again if its cause is still there: ${whyOf(one)}`}
      onConfirm={() => run({ retry: { target: one.target, customerId: one.customerId } })}
    />
  )
  return (
    <>
      <Title title="Roles and groups">
        <Go to="/sync" text="Sync and webhooks" />
      </Title>
      <Listing
        title="Memberships"
        fields={fields}
        list={useList('/sync/memberships', useFilter(fields))}
        keyOf={({ target, accountId }) => `${target} ${accountId}`}
        columns={{
          ...named({ customerId: 'Customer', accountId: 'Account', target: 'Role or group' }),
          'Should be': ({ desired }) => (desired ? IS.member : IS.absent),
          ...named({ desiredSince: 'Since' }),
          Is: ({ applied }) => IS[applied],
          ...named({ state: 'State' }),
          Why: whyOf,
          ...named({ nextAttemptAt: 'Next attempt' }),
          // It does something about all others; about `due` where calls are stopped.
          Retry: (one) => one.state !== 'settled' && one.state !== 'unconfirmed' && retryOf(one),
        }}
        empty="None matches. Customers get one with access to a product that has a role or group, and an account there."
      />
    </>
  )
}
