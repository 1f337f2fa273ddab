import type { MembershipKey } from '../store/membership.js'
import type { MembershipStep } from '../store/membership-steps.js'
import type { WriteSync } from '../store/sync-writes.js'
import { createGathering } from './gathering.js'

interface Step {
  readonly key: MembershipKey
  readonly step: MembershipStep
  readonly answer: (isTaken: boolean) => void
}

/** Takes steps of memberships: those that come while some are being written go together into one transaction. */
export function createStepWriter(
  writeSync: WriteSync,
): (key: MembershipKey, step: MembershipStep) => Promise<boolean> {
  const gather = createGathering<Step>(async (steps) => {
    const taken = await writeSync(
      'takeSteps',
      steps.map(({ key: { environment, target, accountId }, step }) => ({
        key: { environment, target, accountId },
        step,
      })),
    )
    for (const [i, { answer }] of steps.entries()) answer(taken[i] ?? false)
  })
  return (key, step) =>
    new Promise((resolve, reject) => {
      gather({ key, step, answer: resolve }).catch(reject)
    })
}
