import { exportLine } from '../../src/history/line.js'
import type { Endpoint } from '../../src/provider/endpoint.js'
import type { ManualEvent } from '../../src/provider/event.js'
import { SIGNATURE_HEADER, signBody, TIMESTAMP_HEADER } from '../../src/provider/signature.js'

export const SIGNED_AT = Date.parse('2026-03-01T12:00:00.000Z')
export const TIMESTAMP = String(SIGNED_AT / 1000)
const RECEIVED_AT = '2026-03-01T12:00:01.250Z'

export const ENDPOINTS: readonly Endpoint[] = [
  {
    name: 'live',
    environment: 'live',
    secrets: [
      { secret: 'whsec_live', notAfter: null },
      { secret: 'whsec_ended', notAfter: SIGNED_AT },
    ],
    toleranceSeconds: 300,
    aheadAtMostMs: 86_400_000,
  },
  {
    name: 'sandbox',
    environment: 'sandbox',
    secrets: [{ secret: 'whsec_sandbox', notAfter: null }],
    toleranceSeconds: 300,
    aheadAtMostMs: 86_400_000,
  },
]

export function endpointNamed(name: string): Endpoint | undefined {
  return ENDPOINTS.find((endpoint) => endpoint.name === name)
}

/** What a line of an export tells of a delivery; `told` takes the place of what would be right. */
export function deliveryLine(
  body: string,
  told: Readonly<Record<string, unknown>> = {},
  secret = 'whsec_live',
): string {
  return JSON.stringify({
    endpoint: 'live',
    headers: {
      [TIMESTAMP_HEADER]: TIMESTAMP,
      [SIGNATURE_HEADER]: signBody(secret, TIMESTAMP, Buffer.from(body)),
    },
    bodyBase64: Buffer.from(body).toString('base64'),
    receivedAt: RECEIVED_AT,
    ...told,
  })
}

/** The line of something done by hand, in live. */
export function manualLine(event: ManualEvent, told: Readonly<Record<string, unknown>> = {}): string {
  const line = exportLine({
    environment: 'live',
    endpoint: 'manual',
    headers: null,
    body: Buffer.from(JSON.stringify(event)),
    receivedAt: Date.parse(RECEIVED_AT),
  })
  return JSON.stringify({ ...JSON.parse(line), ...told })
}
