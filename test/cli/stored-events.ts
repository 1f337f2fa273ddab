import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { createBatchWriter } from '../../src/ingest/commit.js'
import type { Delivery, ManualAct } from '../../src/ingest/delivery.js'
import { endpoint, writeConfig } from '../config/config-file.js'
import { minute, pay, sub } from '../entitlements/events.js'
import { bodyOf, deliveryOf } from '../ingest/wire.js'
import { temporaryFile, temporaryStore } from '../store/temporary-store.js'
import { type CliRun, cli, NOW } from './run-cli.js'

export const PAID = bodyOf(pay('evt_1', 'payment.authorized', 'pay_1', 0))
export const BEGUN = bodyOf(sub('evt_2', 'subscription.created', 0))
export const HELD = bodyOf(
  pay('evt_3', 'payment.authorized', 'pay_9', 5, { customerId: null, subscriptionId: null }),
)
/** Not even text. */
export const BROKEN = Buffer.from([0x7b, 0xff, 0x00])
/** Another body under the id of the first. */
export const OTHER = bodyOf(pay('evt_1', 'payment.refunded', 'pay_1', 7))

const received = (body: string | Buffer, seconds: number, told: Partial<Delivery> = {}): Delivery =>
  deliveryOf(body, { receivedAt: minute(60) + seconds * 1_000, ...told })
const DELIVERIES = [
  received(PAID, 0, { headers: { event: 'payment.authorized', timestamp: '1', signature: 'v1=aa' } }),
  received(BEGUN, 1),
  received(HELD, 2),
  received(BROKEN, 3, { endpoint: 'legacy' }),
  received(OTHER, 4),
]

/** A config whose database has taken these in, one after the other, in live. */
export async function configWith(
  incoming: readonly (Delivery | ManualAct)[] = DELIVERIES,
  file = temporaryFile(),
): Promise<string> {
  const db = await temporaryStore(file)
  const writeBatch = createBatchWriter({ db, policy: () => DOCUMENTED_POLICY, clock: () => NOW })
  for (const one of incoming) await writeBatch([one])
  return configFor(file)
}

/** A config of a database file that need not be there. */
export function configFor(file: string): string {
  const endpoints = {
    live: endpoint('live', 'whsec_live'),
    sandbox: endpoint('sandbox', 'whsec_sandbox'),
  }
  return writeConfig({ endpoints, database: { url: `sqlite:${file}` } })
}

export function events(config: string, ...args: string[]): Promise<CliRun> {
  return cli(['events', ...args, '--config', config])
}

export function linesOf(text: string): string[] {
  return text.trimEnd().split('\n')
}

/** The ids in a list. */
export function idsIn(text: string): (string | undefined)[] {
  return linesOf(text).map((line) => line.split(/ {2,}/).at(-1))
}
