import type { Readiness } from '../handlers/health.js'
import type { Outage } from '../sync/outages.js'

/** Whether a delivery could be stored now: tried, by storing something small. */
export async function readinessOf(
  isWriterAlive: () => boolean,
  canWrite: () => Promise<boolean>,
  policyDiffers: () => Promise<boolean>,
  outages: () => Promise<readonly Outage[]>,
  configNote: string | null,
): Promise<Readiness> {
  const isWriting = isWriterAlive() && (await canWrite().catch(() => false))
  if (!isWriterAlive()) return { ready: false, notes: ['The writer has stopped.'] }
  if (!isWriting) return { ready: false, notes: ['The store can not be written now.'] }
  return {
    ready: true,
    notes: [
      ...(configNote === null ? [] : [configNote]),
      ...((await policyDiffers()) ? ['The configured policy is not the one in force.'] : []),
      ...(await outages()).map(outageNote),
    ],
  }
}

const OUTAGE_NOTES: Readonly<Record<Outage['name'], string>> = {
  discord: 'Discord is unreachable',
  telegram: 'Telegram is unreachable',
  webhook: 'Webhook delivery is failing',
}

function outageNote({ name, since }: Outage): string {
  return `${OUTAGE_NOTES[name]}${since === null ? '' : ` since ${new Date(since).toISOString()}`}; retrying.`
}
