import type { Happening, MembershipKey } from '../store/membership.js'
import type { WriteSync } from '../store/sync-writes.js'
import { createGathering } from './gathering.js'

interface Step {
  readonly key: MembershipKey
  readonly happening: Happening
  readonly answer: (isTaken: boolean) => void
}

/** Takes steps of memberships: those that come while some are being written go together into one transaction. */
export function createStepWriter(
  writeSync: WriteSync,
): (key: MembershipKey, happening: Happening) => Promise<boolean> {
  const gather = createGathering<Step>(async (steps) => {
    const taken = await writeSync(
      'stepMemberships',
      steps.map(({ key: { environment, target, accountId }, happening }) => ({
        key: { environment, target, accountId },
        happening,
      })),
    )
    for (const [i, { answer }] of steps.entries()) answer(taken[i] ?? false)
  })
  return (key, happening) =>
    new Promise((resolve, reject) => {
      gather({ key, happening, answer: resolve }).catch(reject)
    })
}
