/* Reads stored events again: first as a dry run, then for good. */

import { useState } from 'preact/hooks'
import { get, Problem, refresh, type Schemas, send } from '../../api.js'
import { useSession } from '../../session.js'
import { Ask, type AskProps } from '../../shared/ask.js'
import type { Values } from '../../shared/fields.js'
import { CustomerLink } from '../../shared/links.js'
import { counted, visible } from '../../shared/plain.js'
import { Button, Facts, Notes, type Of, Progress } from '../../shared/show.js'
import { attempt } from '../../shared/toast.js'
import { callText } from '../customer/acts.js'

type Job = Schemas['Replay']
type Summary = NonNullable<Job['summary']>

const ASKED_EVERY_MS = 400

/** The filter is as the API takes it. */
type ReplayProps = Pick<AskProps, 'label' | 'title' | 'isDisabled'> & { readonly filter: Values }

export function Replay({ filter, ...button }: ReplayProps) {
  const { environment } = useSession()
  const [running, setRunning] = useState<Job | null>(null)

  async function run(dryRun: boolean, signal?: AbortSignal): Promise<Summary> {
    let job = await send('post', '/replays', { environment }, { filter, dryRun }, signal)
    while (job.state === 'running') {
      setRunning(job)
      await new Promise((resolve) => setTimeout(resolve, ASKED_EVERY_MS))
      job = await get('/replays/{replayId}', { replayId: job.id }, signal)
    }
    if (job.summary !== null) return job.summary
    throw new Problem('replay', `The replay did not end. ${job.reason ?? ''} What it has done stays done.`)
  }

  const ended = (): void => setRunning(null)
  const stop = (replayId: string) => send('delete', '/replays/{replayId}', { replayId })
  return (
    <Ask
      {...button}
      act="Replay"
      says={`Reads the stored bytes again with the rules of this version, in ${environment}. First it finds out what would follow, and changes nothing.`}
      preview={async (_, signal) => <Effects of={await run(true, signal).finally(ended)} />}
      onConfirm={async () => {
        const { changed, gains, losses } = await run(false).finally(ended)
        refresh()
        return `Replayed: ${changed} read differently, ${gains} gained access and ${losses} lost it.`
      }}
    >
      <Facts of={Object.entries(filter)} />
      {running && (
        <>
          <Progress
            name={running.dryRun ? 'Dry run' : 'Replay'}
            what="events. It goes on without this."
            {...running.progress}
          />
          <Button text="Stop it" onClick={() => attempt(stop(running.id))} />
        </>
      )}
    </Ask>
  )
}

const would = (count: number, does: string) => count > 0 && `${count} ${does}.`

function Effects({ of }: Of<Summary>) {
  const { productName, targetName } = useSession()
  const { gains, losses, otherwise, sample, calls } = of
  const says = [
    `${counted(of.read, 'event')} read, ${of.changed} would be read differently.`,
    would(of.recovered, 'could be used at last'),
    would(of.quarantined, 'could not be used any more'),
    would(of.notReplayable, 'without their bytes: left alone'),
    would(of.altered, 'with altered bytes: left alone'),
    would(of.duplicates, 'with the id of another event: left alone'),
    would(of.skipped, 'of an endpoint that is for another environment now: left alone'),
    gains + losses + otherwise === 0
      ? 'Nobody’s access would change.'
      : `Access: ${gains} would gain it, ${losses} would lose it, ${otherwise} would change otherwise.`,
    would(calls?.gives ?? 0, 'roles and groups would be given'),
    would(calls?.takes ?? 0, 'roles and groups would be taken'),
    ...sample.map(({ customerId, productId, before, after }) => [
      <CustomerLink key={customerId} id={customerId} />,
      `, ${visible(productName(productId))}: ${before.status} → ${after.status}`,
    ]),
    ...(calls?.sample ?? []).map((one) => callText(one, ['would get', 'would lose'], targetName(one.target))),
  ]
  return <Notes of={says} />
}
