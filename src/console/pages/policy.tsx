/* The policy in force, the configured one, and whose access differs between them; rebuilds and verifications. */

import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { answerOf, api, type Problem, type Schemas } from '../api.js'
import { usePlace } from '../router.js'
import { useSession } from '../session.js'
import { statusWords, turnOf } from '../shared/access.js'
import { Ask } from '../shared/ask.js'
import { DAY_MS } from '../shared/days.js'
import { Choose } from '../shared/filters.js'
import { Go } from '../shared/links.js'
import type { AnswerOf } from '../shared/list.js'
import { Button, Listing, Title } from '../shared/page.js'
import { Answer, Badge, Empty, ProblemBox, Section, Table } from '../shared/show.js'
import { Text } from '../shared/text.js'
import { Time } from '../shared/time.js'
import { toast } from '../shared/toast.js'
import { problemOf, useQuery } from '../shared/use-query.js'

type Done = Extract<Schemas['Job'], { state: 'done' }>
type Rules = Schemas['Policy']

export function Policy() {
  return (
    <>
      <Title text="Policy" />
      {useSession().may('admin', 'ofBoth') ? (
        <Both />
      ) : (
        <Empty>
          One policy holds for both environments: sign in with a key that has the scope admin for live and
          sandbox.
        </Empty>
      )}
    </>
  )
}

function Both() {
  const policy = useQuery((signal) => answerOf(api.GET('/policy', { signal })), [])
  const rebuild = useJob('/rebuild')
  useEffect(() => {
    // What is in force may be another policy once a rebuild has ended.
    if (rebuild.data?.state === 'done') policy.reload()
  }, [rebuild.data?.state])
  return (
    <>
      <Answer query={policy}>
        {(both) => (
          <div class="sections">
            <Compared of={both} />
            <Difference fingerprint={both.fingerprint} rebuild={rebuild} onStale={policy.reload} />
          </div>
        )}
      </Answer>
      <Rebuild job={rebuild} />
      <Verification />
    </>
  )
}

const SAYS = {
  failedRenewal: { keep: 'ends nothing by itself', revoke: 'ends access at once' },
  canceled: { effective: 'when it takes effect', period_end: 'with the paid period' },
  completed: { period_end: 'with its last period', keep: 'never' },
  paidCycle: { grants: 'even if its payment was never reported', informs: 'only by its payment' },
} as const

const onRails = (does: string, types: Rules['grantOn'] | Rules['revokeOn']) =>
  Object.entries(types).map(([rail, on]) => [`${does}, rail ${rail}`, on.join(', ') || 'nothing'] as const)

/** Each rule of a policy in words. */
function rulesOf({ grantOn, revokeOn, lapseAfter, ...policy }: Rules) {
  const lapse = lapseAfter === null ? 'never' : `${lapseAfter / DAY_MS} days after the newest known period`
  return new Map<string, string>([
    ...onRails('Grants access', grantOn),
    ...onRails('Ends access', revokeOn),
    ['A failed renewal', SAYS.failedRenewal[policy.failedRenewal]],
    ['A cancellation ends access', SAYS.canceled[policy.canceled]],
    ['A fixed term ends', SAYS.completed[policy.completed]],
    ['A paid cycle grants access', SAYS.paidCycle[policy.paidCycle]],
    ['Access lapses without a renewal', lapse],
  ])
}

function Compared({ of: { inForce, configured, unfinishedRebuild } }: { readonly of: AnswerOf<'/policy'> }) {
  const others = rulesOf(configured)
  const rows = [...rulesOf(inForce)].map(([rule, now]) => ({ rule, now, other: others.get(rule) }))
  const count = rows.filter(({ now, other }) => now !== other).length
  return (
    <Listing
      title="In force, and configured"
      caption="The policy"
      aside={
        <Badge tone={count === 0 ? 'good' : 'warn'}>{count === 0 ? 'the same' : `${count} differ`}</Badge>
      }
      rows={rows}
      columns={[
        { title: 'Rule', cell: ({ rule }) => rule },
        { title: 'In force', cell: ({ now }) => now },
        {
          title: 'Configured',
          cell: ({ now, other }) => (now === other ? 'the same' : <mark>{other}</mark>),
        },
      ]}
      empty={null}
    >
      {count === 0 && !unfinishedRebuild && (
        <p>
          The configured policy is in force. To change it, edit <code>policy</code> in the config, run{' '}
          <code>latchkey reload</code>, and find out here whose access changes before you apply it.
        </p>
      )}
    </Listing>
  )
}

const ASKED_EVERY_MS = 1_000
/** So many examples are in one answer. */
const NAMED = 1_000

const START = {
  '/policy/diff': () => api.POST('/policy/diff', { body: { named: NAMED } }),
  '/rebuild': () => api.POST('/rebuild'),
  '/rebuild/verification': () => api.POST('/rebuild/verification', { body: {} }),
} as const

/** A job of the daemon, whoever started it: asked for again while it runs. */
function useJob(path: keyof typeof START) {
  const job = useQuery((signal) => answerOf<Schemas['Job']>(api.GET(path, { signal })), [path])
  const [refusal, setRefusal] = useState<Problem | null>(null)
  const { data, reload } = job
  const isRunning = data?.state === 'running'
  useEffect(() => {
    if (!isRunning) return
    const timer = window.setTimeout(reload, ASKED_EVERY_MS)
    return () => window.clearTimeout(timer)
  }, [data])
  /** @returns whether it has begun; if not, `refusal` says why */
  async function start(): Promise<boolean> {
    const refused = await answerOf<unknown>(START[path]()).then(() => null, problemOf)
    setRefusal(refused)
    reload()
    return refused === null
  }
  return { ...job, isRunning, refusal, start }
}

type Job = ReturnType<typeof useJob>

interface JobPanelProps {
  readonly title: string
  readonly job: Job
  /** What the job is, such as `rebuild`. */
  readonly name: string
  /** What it says before the first one. */
  readonly none: ComponentChildren
  readonly aside: ComponentChildren
  readonly children: (done: Done) => ComponentChildren
}

/** Starts a job, says how far it is, and what it found. */
function JobPanel({ title, job, name, none, aside, children }: JobPanelProps) {
  function shown(data: Schemas['Job']): ComponentChildren {
    switch (data.state) {
      case 'none':
        return none
      case 'running':
        return (
          <p>
            <progress aria-label={`The ${name}`} max={Math.max(data.total, 1)} value={data.folded} />{' '}
            {data.folded} of {data.total} events
          </p>
        )
      case 'interrupted':
        return `The ${name} was interrupted after ${data.folded} events: start it again, and it goes on.`
      case 'failed':
        return <Text>{`The ${name} failed: ${data.reason}`}</Text>
      case 'done':
        return children(data)
      default:
        return data satisfies never
    }
  }
  return (
    <Section title={title} aside={<div class="filters">{aside}</div>}>
      {job.refusal !== null && <ProblemBox problem={job.refusal} />}
      <Answer query={job}>{shown}</Answer>
    </Section>
  )
}

interface DifferenceProps {
  /** Of the configured policy. */
  readonly fingerprint: string
  readonly rebuild: Job
  /** The configured policy may be another one by now. */
  readonly onStale: () => void
}

function Difference({ fingerprint, rebuild, onStale }: DifferenceProps) {
  const diff = useJob('/policy/diff')
  /** The policy that this page has had compared: a result from before may be of another one. */
  const [compared, setCompared] = useState<string | null>(null)
  const isRunning = diff.isRunning || rebuild.isRunning
  const result = compared === fingerprint && diff.data?.state === 'done' && !diff.isLoading ? diff.data : null

  async function compare(): Promise<void> {
    setCompared(null)
    if (await diff.start()) setCompared(fingerprint)
    // It may be refused for what somebody else began meanwhile.
    else rebuild.reload()
  }
  const effects =
    result === null
      ? ''
      : `Live and sandbox: ${result.gains} gain access, ${result.losses} lose it, and ${result.otherwise} change in another way. What came since the comparison may add to that. Roles, groups and webhooks follow. Deliveries are taken meanwhile.`
  const apply = (
    <Ask
      act="Apply"
      look="danger"
      isDisabled={result === null || isRunning}
      title="Apply the configured policy"
      isDangerous
      says={effects}
      onConfirm={async () => {
        await answerOf(api.POST('/policy/apply', { params: { query: { expect: fingerprint } } }))
        setCompared(null)
        toast('The policy is being applied.')
      }}
      onClose={() => {
        rebuild.reload()
        onStale()
      }}
    />
  )
  return (
    <JobPanel
      title="What the configured policy changes"
      job={diff}
      name="comparison"
      none={null}
      aside={[
        <Button key="find" text="Find out" isDisabled={isRunning} onClick={() => void compare()} />,
        apply,
      ]}
    >
      {(done) => (
        <>
          {result === null && <p>This may be of another policy. Find out again before you apply one.</p>}
          <Changed of={done} words={['would change', 'would gain', 'would lose']} />
        </>
      )}
    </JobPanel>
  )
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
  const options = [
    ['lost', `who ${lose} access`],
    ['gained', `who ${gain} access`],
    ['changed', 'other changes'],
  ] as const
  return (
    <>
      <p>
        <strong>{gains}</strong> {gain} access, <strong>{losses}</strong> {lose} it, {otherwise} {change} in
        another way.
      </p>
      <Choose label="Show" name="turn" options={options} />
      <Table
        caption="Access that differs"
        rows={sample.filter((one) => turn === null || turnOf(one) === turn)}
        keyOf={(one) => JSON.stringify([one.environment, one.customerId, one.productId])}
        columns={[
          { title: 'Customer', cell: customerLink },
          { title: 'Environment', cell: ({ environment }) => environment },
          { title: 'Product', cell: ({ productId }) => <Text>{productName(productId)}</Text> },
          { title: 'What', cell: (one) => <Badge>{turnOf(one)}</Badge> },
          { title: 'Before', cell: ({ before }) => <Access of={before} /> },
          { title: 'After', cell: ({ after }) => <Access of={after} /> },
        ]}
        empty="None of this kind."
      />
      {sample.length < total && (
        <p class="faint">
          And {total - sample.length} more: <code>latchkey policy diff --all</code> lists them.
        </p>
      )}
    </>
  )
}

const customerLink = ({ environment, customerId }: Done['sample'][number]) => (
  <Go to={`/customers/${encodeURIComponent(customerId)}`} with={{ environment }} text={customerId} />
)

const Access = ({ of: { status, until } }: { readonly of: Schemas['AccessSnapshot'] }) => (
  <>
    {statusWords(status)} <Time at={until} never="" />
  </>
)

function Rebuild({ job }: { readonly job: Job }) {
  const rebuild = (
    <Ask
      act="Rebuild"
      isDisabled={job.isRunning}
      title="Work out all access again"
      isDangerous
      says="All access is worked out from the stored events under the policy in force, live and in the sandbox, and differences are corrected. Verify first: it says what is stored otherwise."
      onConfirm={async () => {
        await answerOf(START['/rebuild']())
        toast('The rebuild has begun.')
      }}
      onClose={job.reload}
    />
  )
  return (
    <JobPanel
      title="Last rebuild"
      job={job}
      name="rebuild"
      none="None since the daemon was started. To apply a policy is one, too."
      aside={rebuild}
    >
      {(done) => <Changed of={done} words={['changed', 'gained', 'lost']} />}
    </JobPanel>
  )
}

function Verification() {
  const job = useJob('/rebuild/verification')
  return (
    <JobPanel
      title="Verification"
      job={job}
      name="verification"
      none="It compares all that is stored with what the events say, and changes nothing."
      aside={<Button text="Verify" isDisabled={job.isRunning} onClick={() => void job.start()} />}
    >
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
          empty="Everything stored matches the events."
        />
      )}
    </JobPanel>
  )
}
