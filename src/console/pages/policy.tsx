/* The policy in force, the configured one, and whose access differs between them; and the same work by itself. */

import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { answerOf, api, type Problem, type Schemas } from '../api.js'
import { Link, usePlace } from '../router.js'
import { useAddress, useSession } from '../session.js'
import { statusWords, turnOf } from '../shared/access.js'
import { Choose } from '../shared/choose.js'
import { Confirm } from '../shared/confirm.js'
import { Answer, Badge, Empty, ProblemBox, Section, Table } from '../shared/show.js'
import { Text } from '../shared/text.js'
import { durationText, Time } from '../shared/time.js'
import { toast } from '../shared/toast.js'
import { problemOf, type Query, useQuery } from '../shared/use-query.js'

type Job = Schemas['Job']
type Done = Extract<Job, { state: 'done' }>
type Rules = Schemas['Policy']

const ASKED_EVERY_MS = 1_000

/** A job of the daemon, asked for again while it runs, by whomever it was started. */
function useJob(path: '/policy/diff' | '/rebuild' | '/rebuild/verification'): Query<Job> {
  const job = useQuery((signal) => answerOf<Job>(api.GET(path, { signal })), [path])
  const { data, reload } = job
  useEffect(() => {
    if (data?.state !== 'running') return
    const timer = window.setTimeout(reload, ASKED_EVERY_MS)
    return () => window.clearTimeout(timer)
  }, [data])
  return job
}

export function Policy() {
  const { may } = useSession()
  if (may('admin', 'ofBoth')) return <Both />
  return (
    <>
      <div class="title">
        <h1>Policy</h1>
      </div>
      <Empty>
        <p>
          One policy holds for both environments: sign in with a key that has the scope admin for live and
          sandbox.
        </p>
      </Empty>
    </>
  )
}

function Both() {
  const policy = useQuery((signal) => answerOf(api.GET('/policy', { signal })), [])
  const rebuild = useJob('/rebuild')
  // What is in force is another one once a rebuild has ended.
  const { state } = rebuild.data ?? {}
  useEffect(() => {
    if (state === 'done') policy.reload()
  }, [state])
  return (
    <>
      <div class="title">
        <h1>Policy</h1>
      </div>
      <Answer query={policy}>
        {({ inForce, configured, fingerprint, unfinishedRebuild }) => (
          <div class="sections">
            <Compared inForce={inForce} configured={configured} />
            <Difference
              fingerprint={fingerprint}
              isSame={JSON.stringify(inForce) === JSON.stringify(configured)}
              isUnfinished={unfinishedRebuild}
              rebuild={rebuild}
            />
          </div>
        )}
      </Answer>
      <Rebuild rebuild={rebuild} />
      <Verification />
    </>
  )
}

const SWITCHES = {
  failedRenewal: 'When a renewal fails',
  canceled: 'A cancellation ends access',
  completed: 'A fixed term ends',
  paidCycle: 'A paid cycle',
} as const

const SWITCH_WORDS: Readonly<Record<string, string>> = {
  'failedRenewal keep': 'access stays, until the events that follow end it',
  'failedRenewal revoke': 'access ends at once',
  'canceled effective': 'when it takes effect',
  'canceled period_end': 'with the paid period',
  'completed period_end': 'with its last period',
  'completed keep': 'never',
  'paidCycle grants': 'grants access, even if its payment was never reported',
  'paidCycle informs': 'grants nothing by itself: its payment does',
}

/** Name, in force and configured, in words. */
function rowsOf(inForce: Rules, configured: Rules): readonly (readonly [string, string, string])[] {
  const types = (policy: Rules, on: 'grantOn' | 'revokeOn', rail: 'card' | 'crypto' | 'unknown') =>
    policy[on][rail].join(', ') || 'nothing'
  const rails = (['grantOn', 'revokeOn'] as const).flatMap((on) =>
    (['card', 'crypto', 'unknown'] as const).map(
      (rail) =>
        [
          `${on === 'grantOn' ? 'Grants' : 'Ends access'}, ${rail === 'unknown' ? 'unknown rail' : rail}`,
          types(inForce, on, rail),
          types(configured, on, rail),
        ] as const,
    ),
  )
  const switches = (Object.keys(SWITCHES) as (keyof typeof SWITCHES)[]).map((name) => {
    const words = (policy: Rules) => SWITCH_WORDS[`${name} ${policy[name]}`] ?? policy[name]
    return [SWITCHES[name], words(inForce), words(configured)] as const
  })
  const lapse = ({ lapseAfter }: Rules) =>
    lapseAfter === null ? 'never by itself' : `${durationText(lapseAfter)} after the last known period`
  return [...rails, ...switches, ['Access lapses', lapse(inForce), lapse(configured)]]
}

function Compared({ inForce, configured }: { readonly inForce: Rules; readonly configured: Rules }) {
  const rows = rowsOf(inForce, configured)
  const differing = rows.filter(([, now, then]) => now !== then).length
  return (
    <Section
      title="In force, and configured"
      aside={
        <Badge tone={differing === 0 ? 'good' : 'warn'}>
          {differing === 0 ? 'the same' : `${differing} differ`}
        </Badge>
      }
    >
      <Table
        caption="The policy"
        rows={rows}
        keyOf={([name]) => name}
        columns={[
          { title: 'Rule', cell: ([name]) => name },
          { title: 'In force', cell: ([, now]) => now },
          {
            title: 'Configured',
            cell: ([, now, then]) =>
              now === then ? <span class="faint">the same</span> : <mark>{then}</mark>,
          },
        ]}
        empty={null}
      />
    </Section>
  )
}

interface DifferenceProps {
  readonly fingerprint: string
  readonly isSame: boolean
  readonly isUnfinished: boolean
  readonly rebuild: Query<Job>
}

/** The examples that one answer names. */
const NAMED = 1_000

function Difference({ fingerprint, isSame, isUnfinished, rebuild }: DifferenceProps) {
  const diff = useJob('/policy/diff')
  /** The policy that this page has had compared: a result that somebody else asked for may be of another one. */
  const [compared, setCompared] = useState<string | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const [isApplying, setApplying] = useState(false)
  const { data } = diff
  const isRunning = data?.state === 'running' || rebuild.data?.state === 'running'
  const result = compared === fingerprint && data?.state === 'done' && !diff.isLoading ? data : null

  async function compare(): Promise<void> {
    setProblem(null)
    setCompared(null)
    try {
      await answerOf(api.POST('/policy/diff', { body: { named: NAMED } }))
      setCompared(fingerprint)
    } catch (error) {
      setProblem(problemOf(error))
    }
    diff.reload()
  }

  return (
    <Section
      title="What the configured policy changes"
      aside={
        <div class="filters">
          <button type="button" onClick={() => void compare()} disabled={isRunning}>
            Find out
          </button>
          <button
            type="button"
            class="danger"
            onClick={() => setApplying(true)}
            disabled={result === null || isRunning}
          >
            Apply…
          </button>
        </div>
      }
    >
      {isSame && !isUnfinished && (
        <p>
          The configured policy is in force. To change it, edit <code>policy</code> in the config, run{' '}
          <code>latchkey reload</code>, and find out here whose access changes before you apply it.
        </p>
      )}
      {isUnfinished && rebuild.data?.state !== 'running' && (
        <p>
          <Badge tone="warn">unfinished</Badge> A rebuild was interrupted, so that both policies are in use.
          Apply the configured policy, or rebuild, to end it.
        </p>
      )}
      {problem !== null && <ProblemBox problem={problem} />}
      <JobShown job={diff} name="comparison">
        {(done) => (
          <>
            {result === null && (
              <p class="faint">
                This is the last comparison, maybe of another policy. Find out again before you apply one.
              </p>
            )}
            <Changed of={done} isDone={false} />
          </>
        )}
      </JobShown>
      {isApplying && result !== null && (
        <Confirm
          title="Apply the configured policy"
          act="Apply"
          isDangerous
          reason="none"
          onConfirm={async () => {
            await answerOf(api.POST('/policy/apply', { params: { query: { expect: fingerprint } } }))
            setCompared(null)
            toast('The policy is being applied.')
          }}
          onClose={() => {
            setApplying(false)
            rebuild.reload()
          }}
        >
          <p>
            Live and sandbox: <strong>{result.gains}</strong> gain access, <strong>{result.losses}</strong>{' '}
            lose it, and {result.otherwise} change in another way.
          </p>
          <p>
            Roles, groups and webhooks follow. Deliveries are taken meanwhile. What came since the comparison
            may add to these numbers.
          </p>
        </Confirm>
      )}
    </Section>
  )
}

/** How far a job is, and what it found. */
function JobShown({
  job: { data, problem, reload },
  name,
  children,
}: {
  readonly job: Query<Job>
  readonly name: string
  readonly children: (done: Done) => ComponentChildren
}) {
  if (problem !== null) return <ProblemBox problem={problem} retry={reload} />
  switch (data?.state) {
    case undefined:
    case 'none':
      return null
    case 'running':
      return (
        <p role="status">
          <progress aria-label={`The ${name}`} max={Math.max(data.total, 1)} value={data.folded} />{' '}
          {data.folded} of {data.total} events
        </p>
      )
    case 'interrupted':
      return (
        <p>
          The {name} was interrupted after {data.folded} events: start it again, and it goes on.
        </p>
      )
    case 'failed':
      return (
        <p>
          <Badge>failed</Badge> <Text>{data.reason}</Text>
        </p>
      )
    case 'done':
      return <>{children(data)}</>
    default:
      return data satisfies never
  }
}

type Sample = Done['sample'][number]

/** @param isDone false: it would change */
function Changed({
  of: { gains, losses, otherwise, sample },
  isDone,
}: {
  readonly of: Done
  readonly isDone: boolean
}) {
  const { productName } = useSession()
  const address = useAddress()
  const turn = usePlace().parameters.get('turn')
  if (gains + losses + otherwise === 0)
    return <p>Nobody’s access {isDone ? 'has changed' : 'would change'}.</p>
  const [gain, lose, change] = isDone
    ? (['gained', 'lost', 'changed in another way'] as const)
    : (['would gain', 'would lose', 'would change in another way'] as const)
  const rows = sample.filter((one) => turn === null || turnOf(one) === turn)
  const state = ({ status, until }: Sample['before']) => (
    <>
      {statusWords(status)}
      {until !== null && (
        <>
          , until <Time at={until} />
        </>
      )}
    </>
  )
  return (
    <>
      <p>
        <strong>{gains}</strong> {gain} access, <strong>{losses}</strong> {lose} it, {otherwise} {change}.
      </p>
      <Choose
        label="Show"
        name="turn"
        options={[
          ['lost', `who ${lose} access`],
          ['gained', `who ${gain} access`],
          ['changed', 'other changes'],
        ]}
      />
      <Table
        caption="Access that differs"
        rows={rows}
        keyOf={({ environment, customerId, productId }) =>
          JSON.stringify([environment, customerId, productId])
        }
        columns={[
          {
            title: 'Customer',
            cell: ({ environment, customerId }) => (
              <Link to={address(`/customers/${encodeURIComponent(customerId)}`, { environment })}>
                <Text>{customerId}</Text>
              </Link>
            ),
          },
          { title: 'Environment', cell: ({ environment }) => environment },
          { title: 'Product', cell: ({ productId }) => <Text>{productName(productId)}</Text> },
          { title: 'What', cell: (one) => <Badge>{turnOf(one)}</Badge> },
          { title: 'Before', cell: ({ before }) => state(before) },
          { title: 'After', cell: ({ after }) => state(after) },
        ]}
        empty={<p>None of this kind.</p>}
      />
      {sample.length < gains + losses + otherwise && (
        <p class="faint">
          And {gains + losses + otherwise - sample.length} more: <code>latchkey policy diff --all</code> lists
          them.
        </p>
      )}
    </>
  )
}

function Rebuild({ rebuild }: { readonly rebuild: Query<Job> }) {
  const [isAsking, setAsking] = useState(false)
  const { data } = rebuild
  return (
    <Section
      title="Last rebuild"
      aside={
        <button type="button" onClick={() => setAsking(true)} disabled={data?.state === 'running'}>
          Rebuild…
        </button>
      }
    >
      {data?.state === 'none' && (
        <p>
          None since the daemon was started. Applying a policy is one, too: all access is worked out again.
        </p>
      )}
      <JobShown job={rebuild} name="rebuild">
        {(done) => <Changed of={done} isDone />}
      </JobShown>
      {isAsking && (
        <Confirm
          title="Work out all access again"
          act="Rebuild"
          isDangerous
          reason="none"
          onConfirm={async () => {
            await answerOf(api.POST('/rebuild'))
            toast('The rebuild has begun.')
          }}
          onClose={() => {
            setAsking(false)
            rebuild.reload()
          }}
        >
          <p>
            All access is worked out from the stored events under the policy in force, live and in the
            sandbox, and differences are corrected. Verify first: it says what is stored otherwise.
          </p>
        </Confirm>
      )}
    </Section>
  )
}

function Verification() {
  const job = useJob('/rebuild/verification')
  const [problem, setProblem] = useState<Problem | null>(null)
  const { data } = job
  const verify = async (): Promise<void> => {
    setProblem(null)
    await answerOf(api.POST('/rebuild/verification', { body: {} })).catch((error: unknown) =>
      setProblem(problemOf(error)),
    )
    job.reload()
  }
  return (
    <Section
      title="Verification"
      aside={
        <button type="button" onClick={() => void verify()} disabled={data?.state === 'running'}>
          Verify
        </button>
      }
    >
      {problem !== null && <ProblemBox problem={problem} />}
      {data?.state === 'none' && (
        <p>It compares all that is stored with what the events say, and changes nothing.</p>
      )}
      <JobShown job={job} name="verification">
        {({ differences }) => (
          <Table
            caption="What is stored otherwise"
            rows={differences?.named ?? []}
            keyOf={({ environment, kind, id }) => `${environment} ${kind} ${id}`}
            columns={[
              { title: 'Environment', cell: ({ environment }) => environment },
              { title: 'What', cell: ({ kind }) => kind },
              { title: 'Id', cell: ({ id }) => <Text>{id}</Text> },
            ]}
            empty={<p>Everything stored matches the events.</p>}
          />
        )}
      </JobShown>
    </Section>
  )
}
