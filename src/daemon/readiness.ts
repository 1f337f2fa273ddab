import type { Readiness } from '../handlers/readyz.js'

/** Whether a delivery could be stored now: tried, by storing something small. */
export async function readinessOf(
  isWriterAlive: () => boolean,
  canWrite: () => Promise<boolean>,
  policyDiffers: () => Promise<boolean>,
): Promise<Readiness> {
  const isWriting = isWriterAlive() && (await canWrite().catch(() => false))
  if (!isWriterAlive()) return { ready: false, notes: ['The writer has stopped.'] }
  if (!isWriting) return { ready: false, notes: ['The store can not be written now.'] }
  return {
    ready: true,
    notes: (await policyDiffers()) ? ['The configured policy is not the one in force.'] : [],
  }
}
