/* The policy in force, the configured one, and whose access differs between them; rebuilds and verifications. */

import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { type AnswerOf, refresh, type Schemas, send } from '../api.js'
import { statusWords, TURNS, turnOf } from '../shared/access.js'
import { Ask } from '../shared/ask.js'
import { Filters, useFilter } from '../shared/fields.js'
import { CustomerLink } from '../shared/links.js'
import { Answer, Badge, Button, type Of, Progress, Says, Section, Title } from '../shared/show.js'
import { Listing, named, Table } from '../shared/table.js'
import { DAY_MS } from '../shared/text.js'
import { attempt } from '../shared/toast.js'
import { useGet } from '../shared/use-query.js'

type Done = Extract<Schemas['Job'], { state: 'done' }>
type Rules = Schemas['Policy']

/** The policy and its jobs are of no environment. */
const OF_ALL = { environment: null }
const ASKED_EVERY_MS = 1_000
/** So many examples are in one answer. */
const NAMED = 1_000

export function Page() {
  const policy = useGet('/policy', OF_ALL)
  const [rebuild, verification] = [useJob('/rebuild'), useJob('/rebuild/verification')]
  const verify = (): void => attempt(send('post', '/rebuild/verification', {}, {}))
  const state = rebuild.data?.state
  useEffect(() => {
    // What is in force may be another policy once a rebuild has ended.
    if (state === 'done') refresh()
  }, [state])
  return (
    <>
      <Title title="Policy" />
      <Answer query={policy}>
        {(both) => [
          <Compared key={1} of={both} />,
          <Difference key={2} fingerprint={both.fingerprint} isRebuilding={rebuild.isRunning} />,
        ]}
      </Answer>
      <JobPanel
        title="Last rebuild"
        job={rebuild}
        name="rebuild"
        none="None since the daemon was started. To apply a policy is one, too."
        aside={
          <Ask
            act="Rebuild"
            isDisabled={rebuild.isRunning}
            title="Work out all access again"
            isDangerous
            says="All access is worked out from the stored events under the policy in force, live and in the sandbox, and differences are corrected. Verify first: it says what is stored otherwise."
            onConfirm={() => send('post', '/rebuild').then(() => 'The rebuild has begun.')}
          />
        }
      >
        {(done) => <Changed of={done} words={['changed', 'gained', 'lost']} />}
      </JobPanel>
      <JobPanel
        title="Verification"
        job={verification}
        name="verification"
        none="It compares all that is stored with what the events say, and changes nothing."
        aside={<Button text="Verify" isDisabled={verification.isRunning} onClick={verify} />}
      >
        {({ differences }) => (
          <Table
            caption="What is stored otherwise"
            rows={differences?.named ?? []}
            columns={named({ environment: 'Environment', kind: 'What', id: 'Id' })}
            empty="Everything stored matches the events."
          />
        )}
      </JobPanel>
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

const SAME =
  'The configured policy is in force. To change it, edit `policy` in the config, run `latchkey reload`, and find out here whose access changes before you apply it.'

function Compared({ of: { inForce, configured, unfinishedRebuild } }: Of<AnswerOf<'/policy'>>) {
  const others = rulesOf(configured)
  const rows = [...rulesOf(inForce)].map(([rule, now]) => ({ rule, now, other: others.get(rule) }))
  const count = rows.filter(({ now, other }) => now !== other).length
  const said = count === 0 ? 'the same' : `${count} differ`
  return (
    <Listing
      title="In force, and configured"
      caption="The policy"
      aside={<Badge text={said} tone={count === 0 ? 'good' : 'warn'} />}
      rows={rows}
      columns={{
        ...named({ rule: 'Rule', now: 'In force' }),
        Configured: ({ now, other }) => (now === other ? 'the same' : <mark>{other}</mark>),
      }}
    >
      {count === 0 && !unfinishedRebuild && <Says text={SAME} />}
    </Listing>
  )
}

/** A job of the daemon, whoever started it: asked for again while it runs. */
function useJob(path: '/policy/diff' | '/rebuild' | '/rebuild/verification') {
  const job = useGet(path, OF_ALL)
  const isRunning = job.data?.state === 'running'
  useEffect(() => {
    if (!isRunning) return
    const timer = window.setTimeout(job.reload, ASKED_EVERY_MS)
    return () => window.clearTimeout(timer)
  }, [job.data])
  return { ...job, isRunning }
}

interface JobPanelProps {
  readonly title: string
  readonly job: ReturnType<typeof useJob>
  readonly name: string
  readonly none: string
  readonly aside: ComponentChildren
  readonly children: (done: Done) => ComponentChildren
}

/** Says how far a job is, and what it found. */
function JobPanel({ title, job, name, none, aside, children }: JobPanelProps) {
  function shown(data: Schemas['Job']): ComponentChildren {
    switch (data.state) {
      case 'none':
        return none
      case 'running':
        return <Progress name={`The ${name}`} what="events" reached={data.folded} total={data.total} />
      case 'interrupted':
        return `The ${name} was interrupted after ${data.folded} events: start it again, and it goes on.`
      case 'failed':
        return `The ${name} did not end. ${data.reason}`
      case 'done':
        return children(data)
      default:
        return data satisfies never
    }
  }
  return (
    <Section title={title} aside={aside}>
      <Answer query={job}>{shown}</Answer>
    </Section>
  )
}

type DifferenceProps = { readonly fingerprint: string; readonly isRebuilding: boolean }

function Difference({ fingerprint, isRebuilding }: DifferenceProps) {
  const diff = useJob('/policy/diff')
  /** The policy that this page has had compared: a result from before may be of another one. */
  const [compared, setCompared] = useState<string | null>(null)
  const result = compared === fingerprint && !diff.isLoading && diff.data?.state === 'done' ? diff.data : null
  const { gains = 0, losses = 0, otherwise = 0 } = result ?? {}
  const isBusy = diff.isRunning || isRebuilding
  const isOfNobody = gains + losses + otherwise === 0
  const find = (): void => attempt(compare())
  async function compare(): Promise<void> {
    setCompared(null)
    await send('post', '/policy/diff', {}, { named: NAMED })
    setCompared(fingerprint)
  }
  const apply = (
    <Ask
      key="apply"
      act="Apply"
      look={isOfNobody ? undefined : 'danger'}
      isDisabled={result === null || isBusy}
      title="Apply the configured policy"
      isDangerous={!isOfNobody}
      says={`Live and sandbox: ${gains} gain access, ${losses} lose it, and ${otherwise} change in another way. What came since the comparison may add to that. Roles, groups and webhooks follow. Deliveries are taken meanwhile.`}
      onConfirm={async () => {
        await send('post', '/policy/apply', { expect: fingerprint })
        setCompared(null)
        return 'The policy is being applied.'
      }}
    />
  )
  return (
    <JobPanel
      title="What the configured policy changes"
      job={diff}
      name="comparison"
      none="Find out whose access changes, then apply it."
      aside={[<Button key={1} text="Find out" isDisabled={isBusy} onClick={find} />, apply]}
    >
      {(done) => (
        <>
          {result === null && 'This may be of another policy. Find out again before you apply one.'}
          <Changed of={done} words={['would change', 'would gain', 'would lose']} />
        </>
      )}
    </JobPanel>
  )
}

const accessText = ({ status, until }: Schemas['AccessSnapshot']) => `${statusWords(status)} ${until ?? ''}`

/** For those whose access changes in any way, who gain and who lose it. */
type Words = readonly [change: string, gain: string, lose: string]

function Changed({ of: done, words: [change, gain, lose] }: Of<Done> & { readonly words: Words }) {
  const { gains, losses, otherwise, sample } = done
  const titles = { lost: `who ${lose} access`, gained: `who ${gain} access`, changed: 'other changes' }
  const fields = [{ label: 'Show', name: 'turn', options: TURNS.map((one) => [one, titles[one]] as const) }]
  const { turn } = useFilter(fields)
  const total = gains + losses + otherwise
  if (total === 0) return <p>Nobody’s access {change}.</p>
  const more = `And ${total - sample.length} more: \`latchkey policy diff --all\` lists them.`
  return (
    <>
      <Says text={`${gains} ${gain} access, ${losses} ${lose} it, ${otherwise} ${change} in another way.`} />
      <Filters fields={fields} />
      <Table
        caption="Access that differs"
        rows={sample.filter((one) => turn === undefined || turnOf(one) === turn)}
        columns={{
          Customer: ({ environment, customerId }) => <CustomerLink id={customerId} with={{ environment }} />,
          ...named({ environment: 'Environment', productId: 'Product' }),
          What: (one) => <Badge text={turnOf(one)} />,
          Before: ({ before }) => accessText(before),
          After: ({ after }) => accessText(after),
        }}
        empty="None of this kind."
      />
      {sample.length < total && <Says text={more} look="faint" />}
    </>
  )
}
