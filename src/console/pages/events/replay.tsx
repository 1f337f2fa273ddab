/* Reads stored events again: first as a dry run, then for good. */

import { useState } from 'preact/hooks'
import { answerOf, api, type Schemas } from '../../api.js'
import { useSession } from '../../session.js'
import { Confirm } from '../../shared/confirm.js'
import { Facts } from '../../shared/show.js'
import { Text } from '../../shared/text.js'
import { CustomerLink, StatusChange } from '../../shared/things.js'
import { durationText } from '../../shared/time.js'
import { toast } from '../../shared/toast.js'

type Replay = Schemas['Replay']
type Summary = NonNullable<Replay['summary']>
export type ReplayFilter = Partial<
  Pick<Schemas['StoredEvent'], 'disposition'> &
    Record<'type' | 'customerId' | 'endpoint' | 'from' | 'to', string>
>

const ASKED_EVERY_MS = 400

interface ReplayDialogProps {
  readonly title: string
  readonly filter: ReplayFilter
  readonly onClose: () => void
  readonly onDone: () => void
}

export function ReplayDialog({ title, filter, onClose, onDone }: ReplayDialogProps) {
  const { environment } = useSession()
  const [running, setRunning] = useState<Replay | null>(null)

  async function run(dryRun: boolean, signal?: AbortSignal): Promise<Summary> {
    const asked = signal && { signal }
    const query = { environment }
    let job = await answerOf(api.POST('/replays', { params: { query }, body: { filter, dryRun }, ...asked }))
    for (;;) {
      setRunning(job.state === 'running' ? job : null)
      if (job.state !== 'running') break
      await new Promise((resolve) => setTimeout(resolve, ASKED_EVERY_MS))
      const path = { replayId: job.id }
      job = await answerOf(api.GET('/replays/{replayId}', { params: { path }, ...asked }))
    }
    if (job.summary !== null) return job.summary
    const ended = job.state === 'stopped' ? 'The replay was stopped' : 'The replay failed'
    throw new Error(`${ended}${job.reason === null ? '' : `: ${job.reason}`}. What it has done stays done.`)
  }

  const stop = (replayId: string): void =>
    void answerOf(api.DELETE('/replays/{replayId}', { params: { path: { replayId } } })).catch(() =>
      toast('It could not be stopped. Try again.', 'bad'),
    )
  return (
    <Confirm
      title={title}
      act="Replay"
      reason="none"
      preview={async (signal) => <Effects summary={await run(true, signal)} />}
      onConfirm={async () => {
        const { changed, gains, losses } = await run(false)
        toast(`Replayed: ${changed} read differently, ${gains} gained access and ${losses} lost it.`)
        onDone()
      }}
      onClose={onClose}
    >
      <p>
        Reads the stored bytes again with the program of today, in {environment}. First it finds out what
        would follow, and changes nothing.
      </p>
      {Object.keys(filter).length > 0 && <Facts of={Object.entries(filter)} />}
      {running !== null && (
        <div class="progress">
          <progress
            max={Math.max(running.progress.total, 1)}
            value={running.progress.reached}
            aria-label={running.dryRun ? 'Dry run' : 'Replay'}
          />
          <p>
            {running.dryRun ? 'Dry run' : 'Replay'}: {running.progress.reached} of {running.progress.total}
            {running.progress.remainingSeconds !== null &&
              `, about ${durationText(running.progress.remainingSeconds * 1_000)} left`}
            . It goes on if you close this.
          </p>
          <button type="button" onClick={() => stop(running.id)}>
            Stop it
          </button>
        </div>
      )}
    </Confirm>
  )
}

const LEFT_ALONE = {
  notReplayable: 'without their bytes',
  altered: 'with altered bytes',
  duplicates: 'with the id of another event',
  skipped: 'of an endpoint that is for another environment now',
} as const

function Effects({ summary }: { readonly summary: Summary }) {
  const { productName } = useSession()
  const { read, changed, recovered, quarantined, gains, losses, otherwise, sample, calls } = summary
  const left = Object.entries(LEFT_ALONE).filter(([name]) => summary[name as keyof typeof LEFT_ALONE] > 0)
  const access = gains + losses + otherwise
  return (
    <>
      <p>
        {read} {read === 1 ? 'event' : 'events'} read, {changed} would be read differently
        {recovered > 0 && `, ${recovered} could be used at last`}
        {quarantined > 0 && `, ${quarantined} could not be used any more`}.
      </p>
      {left.map(([name, words]) => (
        <p key={name}>
          {summary[name as keyof typeof LEFT_ALONE]} {words}: left alone.
        </p>
      ))}
      <p>
        {access === 0
          ? 'Nobody’s access would change.'
          : `Access: ${gains} would gain it, ${losses} would lose it, ${otherwise} would change otherwise.`}
      </p>
      <ul class="effects">
        {sample.map(({ customerId, productId, before, after }) => (
          <li key={`${customerId} ${productId}`}>
            <CustomerLink id={customerId} />, <Text>{productName(productId)}</Text>:{' '}
            <StatusChange before={before} after={after} />
          </li>
        ))}
        {(calls?.sample ?? []).map(({ target, accountId, action }) => (
          <li key={`${target} ${accountId}`}>
            Account <Text>{accountId}</Text> {action === 'give' ? 'would get' : 'would lose'}{' '}
            <code>{target}</code>.
          </li>
        ))}
      </ul>
      {calls !== null && calls.gives + calls.takes > calls.sample.length && (
        <p>
          In all {calls.gives} roles and groups would be given, and {calls.takes} taken.
        </p>
      )}
    </>
  )
}
