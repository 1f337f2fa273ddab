/* The policy in force, the configured one, and whose access differs between them; rebuilds and verifications. */

import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { answerOf, api, type Problem, type Schemas } from '../api.js'
import { usePlace } from '../router.js'
import { useSession } from '../session.js'
import { statusWords, turnOf } from '../shared/access.js'
import { Ask } from '../shared/ask.js'
import { Choose } from '../shared/choose.js'
import { DAY_MS } from '../shared/days.js'
import { CustomerLink } from '../shared/links.js'
import { Answer, Badge, Empty, ProblemBox, Section, Table } from '../shared/show.js'
import { Text } from '../shared/text.js'
import { Time } from '../shared/time.js'
import { toast } from '../shared/toast.js'
import { problemOf, type Query, useQuery } from '../shared/use-query.js'

type Job = Schemas['Job']
type Done = Extract<Job, { state: 'done' }>
type Rules = Schemas['Policy']

const ASKED_EVERY_MS = 1_000

/** A job of the daemon, whoever started it: asked for again while it runs. */
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
  return (
    <>
      <div class="title">
        <h1>Policy</h1>
      </div>
      {may('admin', 'ofBoth') ? (
        <Both />
      ) : (
        <Empty>
          <p>
            One policy holds for both environments: sign in with a key that has the scope admin for live and
            sandbox.
          </p>
        </Empty>
      )}
    </>
  )
}

function Both() {
  const policy = useQuery((signal) => answerOf(api.GET('/policy', { signal })), [])
  const rebuild = useJob('/rebuild')
  const { state } = rebuild.data ?? {}
  useEffect(() => {
    // What is in force may be another policy once a rebuild has ended.
    if (state === 'done') policy.reload()
  }, [state])
  return (
    <>
      <Answer query={policy}>
        {({ inForce, configured, fingerprint, unfinishedRebuild }) => (
          <div class="sections">
            <Compared inForce={inForce} configured={configured} />
            <Difference
              fingerprint={fingerprint}
              isSame={JSON.stringify(inForce) === JSON.stringify(configured)}
              isUnfinished={unfinishedRebuild}
              rebuild={rebuild}
              onStale={policy.reload}
            />
          </div>
        )}
      </Answer>
      <Rebuild rebuild={rebuild} />
      <Verification />
    </>
  )
}

const RAILS = ['card', 'crypto', 'unknown'] as const

/** In the order of the table, each with the words for its values. */
const SWITCHES = {
  failedRenewal: ['A failed renewal', { keep: 'ends nothing by itself', revoke: 'ends access at once' }],
  canceled: [
    'A cancellation ends access',
    { effective: 'when it takes effect', period_end: 'with the paid period' },
  ],
  completed: ['A fixed term ends', { period_end: 'with its last period', keep: 'never' }],
  paidCycle: [
    'A paid cycle grants access',
    { grants: 'even if its payment was never reported', informs: 'only by its payment' },
  ],
} as const satisfies {
  readonly [Name in 'failedRenewal' | 'canceled' | 'completed' | 'paidCycle']: readonly [
    string,
    Readonly<Record<Rules[Name], string>>,
  ]
}

/** Each rule of a policy in words. */
function rulesOf(policy: Rules): readonly (readonly [rule: string, says: string])[] {
  const { grantOn, revokeOn, lapseAfter } = policy
  const types = (on: Rules['grantOn'] | Rules['revokeOn'], does: string) =>
    RAILS.map((rail) => [`${does}, rail ${rail}`, on[rail].join(', ') || 'nothing'] as const)
  const switches = (Object.keys(SWITCHES) as (keyof typeof SWITCHES)[]).map((name) => {
    const [title, words] = SWITCHES[name]
    return [title, (words as Readonly<Record<string, string>>)[policy[name]] ?? policy[name]] as const
  })
  const lapse = lapseAfter === null ? 'never' : `${lapseAfter / DAY_MS} days after the newest known period`
  return [
    ...types(grantOn, 'Grants access'),
    ...types(revokeOn, 'Ends access'),
    ...switches,
    ['Access lapses without a renewal', lapse],
  ]
}

function Compared({ inForce, configured }: { readonly inForce: Rules; readonly configured: Rules }) {
  const others = new Map(rulesOf(configured))
  const rows = rulesOf(inForce).map(([rule, says]) => ({ rule, says, other: others.get(rule) ?? '' }))
  const count = rows.filter(({ says, other }) => says !== other).length
  return (
    <Section
      title="In force, and configured"
      aside={
        <Badge tone={count === 0 ? 'good' : 'warn'}>{count === 0 ? 'the same' : `${count} differ`}</Badge>
      }
    >
      <Table
        caption="The policy"
        rows={rows}
        keyOf={({ rule }) => rule}
        columns={[
          { title: 'Rule', cell: ({ rule }) => rule },
          { title: 'In force', cell: ({ says }) => says },
          {
            title: 'Configured',
            cell: ({ says, other }) =>
              says === other ? <span class="faint">the same</span> : <mark>{other}</mark>,
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
  /** The configured policy may be another one by now. */
  readonly onStale: () => void
}

/** So many examples are in one answer. */
const NAMED = 1_000

function Difference({ fingerprint, isSame, isUnfinished, rebuild, onStale }: DifferenceProps) {
  const diff = useJob('/policy/diff')
  /** The policy that this page has had compared: a result from before may be of another one. */
  const [compared, setCompared] = useState<string | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
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
      // It may be what somebody else began meanwhile.
      rebuild.reload()
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
          <Ask
            label="Apply…"
            look="danger"
            isDisabled={result === null || isRunning}
            title="Apply the configured policy"
            act="Apply"
            isDangerous
            onConfirm={async () => {
              await answerOf(api.POST('/policy/apply', { params: { query: { expect: fingerprint } } }))
              setCompared(null)
              toast('The policy is being applied.')
            }}
            onClose={() => {
              rebuild.reload()
              onStale()
            }}
          >
            <p>
              Live and sandbox: <strong>{result?.gains}</strong> gain access,{' '}
              <strong>{result?.losses}</strong> lose it, and {result?.otherwise} change in another way. What
              came since the comparison may add to that.
            </p>
            <p>Roles, groups and webhooks follow. Deliveries are taken meanwhile.</p>
          </Ask>
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
            <Changed of={done} words={['would change', 'would gain', 'would lose']} />
          </>
        )}
      </JobShown>
    </Section>
  )
}

interface JobShownProps {
  readonly job: Query<Job>
  readonly name: string
  readonly children: (done: Done) => ComponentChildren
}

/** How far a job is, and what it found. */
function JobShown({ job: { data, problem, reload }, name, children }: JobShownProps) {
  if (problem !== null) return <ProblemBox problem={problem} retry={reload} />
  switch (data?.state) {
    case undefined:
    case 'none':
      return null
    case 'running':
      return (
        <p>
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

interface ChangedProps {
  readonly of: Done
  /** For those whose access changes in any way, who gain and who lose it. */
  readonly words: readonly [change: string, gain: string, lose: string]
}

function Changed({ of: { gains, losses, otherwise, sample }, words: [change, gain, lose] }: ChangedProps) {
  const { productName } = useSession()
  const turn = usePlace().parameters.get('turn')
  const total = gains + losses + otherwise
  if (total === 0) return <p>Nobody’s access {change}.</p>
  const stateOf = ({ status, until }: Schemas['AccessSnapshot']) => (
    <>
      {statusWords(status)} {until !== null && <Time at={until} />}
    </>
  )
  return (
    <>
      <p>
        <strong>{gains}</strong> {gain} access, <strong>{losses}</strong> {lose} it, {otherwise} {change} in
        another way.
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
        rows={sample.filter((one) => turn === null || turnOf(one) === turn)}
        keyOf={({ environment, customerId, productId }) =>
          JSON.stringify([environment, customerId, productId])
        }
        columns={[
          {
            title: 'Customer',
            cell: ({ environment, customerId }) => <CustomerLink id={customerId} environment={environment} />,
          },
          { title: 'Environment', cell: ({ environment }) => environment },
          { title: 'Product', cell: ({ productId }) => <Text>{productName(productId)}</Text> },
          { title: 'What', cell: (one) => <Badge>{turnOf(one)}</Badge> },
          { title: 'Before', cell: ({ before }) => stateOf(before) },
          { title: 'After', cell: ({ after }) => stateOf(after) },
        ]}
        empty={<p>None of this kind.</p>}
      />
      {sample.length < total && (
        <p class="faint">
          And {total - sample.length} more: <code>latchkey policy diff --all</code> lists them.
        </p>
      )}
    </>
  )
}

function Rebuild({ rebuild }: { readonly rebuild: Query<Job> }) {
  const { data, reload } = rebuild
  return (
    <Section
      title="Last rebuild"
      aside={
        <Ask
          label="Rebuild…"
          isDisabled={data?.state === 'running'}
          title="Work out all access again"
          act="Rebuild"
          isDangerous
          onConfirm={async () => {
            await answerOf(api.POST('/rebuild'))
            toast('The rebuild has begun.')
          }}
          onClose={reload}
        >
          <p>
            All access is worked out from the stored events under the policy in force, live and in the
            sandbox, and differences are corrected. Verify first: it says what is stored otherwise.
          </p>
        </Ask>
      }
    >
      {data?.state === 'none' && <p>None since the daemon was started. To apply a policy is one, too.</p>}
      <JobShown job={rebuild} name="rebuild">
        {(done) => <Changed of={done} words={['changed', 'gained', 'lost']} />}
      </JobShown>
    </Section>
  )
}

function Verification() {
  const job = useJob('/rebuild/verification')
  const [problem, setProblem] = useState<Problem | null>(null)
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
        <button type="button" onClick={() => void verify()} disabled={job.data?.state === 'running'}>
          Verify
        </button>
      }
    >
      {problem !== null && <ProblemBox problem={problem} />}
      {job.data?.state === 'none' && (
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
