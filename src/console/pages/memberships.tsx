/* Who should be, and who is, a member of which role or group, and what that waits for. */

import { useState } from 'preact/hooks'
import { answerOf, api, type Environment, type Schemas } from '../api.js'
import { Link, setParameters, usePlace } from '../router.js'
import { useAddress, useSession } from '../session.js'
import { Choose } from '../shared/choose.js'
import { Confirm } from '../shared/confirm.js'
import { Badge, PagedTable, Section } from '../shared/show.js'
import { Text } from '../shared/text.js'
import { Time } from '../shared/time.js'
import { toast } from '../shared/toast.js'
import { usePages } from '../shared/use-query.js'

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
  const made = [
    `${given} given, ${taken} taken`,
    failed > 0 && `${failed} failed`,
    parked > 0 && `${parked} need somebody`,
    waiting > 0 && `${waiting} wait for the customer`,
    messages > 0 && `${messages} messages to be sent again`,
  ].filter((one) => one !== false)
  toast(`${made.join(', ')}.`, failed + parked > 0 ? 'bad' : 'good')
}

/** What a retry does something about. */
const RETRIED: readonly State[] = ['retrying', 'waiting', 'parked']

export function Memberships() {
  const { environment, targets } = useSession()
  const { parameters } = usePlace()
  const address = useAddress()
  const [target, state, customerId] = ['target', 'state', 'customerId'].map((name) => parameters.get(name))
  const pages = usePages(
    (cursor, signal) => {
      const query = {
        environment,
        limit: 50,
        ...(target && { target }),
        // The API says which ones there are.
        ...(state && { state: state as State }),
        ...(customerId && { customerId }),
        ...(cursor !== undefined && { cursor }),
      }
      return answerOf(api.GET('/sync/memberships', { params: { query }, signal }))
    },
    [environment, target, state, customerId],
  )
  const [retried, setRetried] = useState<Membership | null>(null)
  return (
    <>
      <div class="title">
        <h1>Roles and groups</h1>
        <Link to={address('/sync')}>Sync and webhooks</Link>
      </div>
      <Section
        title="Memberships"
        aside={
          <div class="filters">
            <Choose label="Role or group" name="target" options={targets.map((one) => [one, one])} />
            <Choose label="State" name="state" options={STATES.map((one) => [one, one])} />
            {customerId && (
              <button type="button" onClick={() => setParameters({ customerId: null })}>
                Of all customers, not only {customerId}
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
          keyOf={(one) => `${one.target} ${one.accountId}`}
          columns={[
            {
              title: 'Customer',
              cell: (one) => (
                <>
                  <Link to={address(`/customers/${encodeURIComponent(one.customerId)}`)}>
                    <Text>{one.customerId}</Text>
                  </Link>
                  <br />
                  <span class="faint">
                    account <Text>{one.accountId}</Text>
                  </span>
                </>
              ),
            },
            { title: 'Role or group', cell: (one) => <Text>{one.target}</Text> },
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
            { title: 'State', cell: (one) => <Badge>{one.state}</Badge> },
            { title: 'Why', cell: (one) => <Why of={one} /> },
            {
              title: 'Retry',
              cell: (one) =>
                RETRIED.includes(one.state) && (
                  <button
                    type="button"
                    class="small"
                    aria-label={`Retry ${one.customerId}`}
                    onClick={() => setRetried(one)}
                  >
                    Retry…
                  </button>
                ),
            },
          ]}
          empty={
            <p>
              {state || target || customerId
                ? 'None matches. Choose another state, or another role or group.'
                : 'There is none: customers get one with access to a product that has a role or group, and an account there.'}
            </p>
          }
        />
      </Section>
      {retried !== null && (
        <Confirm
          title={`Retry ${retried.customerId} in ${retried.target}`}
          act="Retry"
          reason="none"
          onConfirm={async () => {
            const { target: of, customerId: who } = retried
            await runSync(retried.environment, { retry: { target: of, customerId: who } })
          }}
          onClose={() => {
            setRetried(null)
            pages.reload()
          }}
        >
          <p>
            The platform is called now, to {retried.desired ? 'give' : 'take away'} it. It fails again if its
            cause is still there: <Why of={retried} />
          </p>
        </Confirm>
      )}
    </>
  )
}

function Why({ of: { state, parked, lastError, nextAttemptAt, attempts } }: { readonly of: Membership }) {
  const failure = parked ?? lastError
  return (
    <>
      {failure === null || state === 'settled' ? STATE_WORDS[state] : <Text>{failure.message}</Text>}
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
