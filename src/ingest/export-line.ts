import { EVENT_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER } from '../provider/signature.js'
import type { ExportedDelivery } from '../store/event-export.js'

/** A delivery with its exact bytes. */
interface ExportableDelivery extends Omit<ExportedDelivery, 'body' | 'isAltered'> {
  readonly body: Buffer
}

/**
 * One line of an export. A delivery is told as it came, under the names of its headers, so that its signature can be
 * checked again. What was done by hand is of another kind: nobody signed it, and its environment is told outright.
 */
export function exportLine({ headers, ...delivery }: ExportableDelivery): string {
  const received = {
    bodyBase64: delivery.body.toString('base64'),
    receivedAt: new Date(delivery.receivedAt).toISOString(),
  }
  const told =
    headers === null
      ? { kind: 'manual', environment: delivery.environment, ...received }
      : {
          endpoint: delivery.endpoint,
          headers: {
            ...(headers.event === null ? {} : { [EVENT_HEADER]: headers.event }),
            [TIMESTAMP_HEADER]: headers.timestamp,
            [SIGNATURE_HEADER]: headers.signature,
          },
          ...received,
        }
  return `${JSON.stringify(told)}\n`
}
