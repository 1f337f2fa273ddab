/* Brings a world to rest, and looks whether it kept its promises. */

import { elapsed, pass, until } from '../machine/time.js'
import { trace } from '../machine/trace.js'
import { passUntil } from '../run.js'
import { DAY_MS, HOUR_MS } from '../story.js'
import { BrokenPromise, type Json, MINUTE_MS, type World } from '../world.js'

/** As many as one question may have. */
const CHECKS_AT_ONCE = 1_000

/** Everything works again, and what was lost is sent again. */
export async function beQuiet(world: World): Promise<void> {
  const { daemon, service } = world
  daemon.disk.isFull = false
  daemon.disk.onStatement = () => {}
  daemon.setSkew(0)
  if (!daemon.isRunning()) await until('a start', daemon.start(), MINUTE_MS)
  await until('the end of faults', service.sandbox.faults(null), MINUTE_MS)
  // What was held back is at most a day late.
  await passUntil(world, elapsed() + DAY_MS + HOUR_MS)
  await pass(2 * MINUTE_MS)
  for (let left = 1; left > 0; ) left = await until('what was lost', service.sendAgain(), DAY_MS)
  await pass(2 * MINUTE_MS)
  await until('the truth', assertTruth(world), MINUTE_MS)
}

async function assertTruth({ service, operate }: World): Promise<void> {
  const { access } = await service.data('GET /sandbox/truth')
  const truth = new Set((access as Json[]).map(({ customerId, productId }) => `${customerId} ${productId}`))
  const products = Object.values(service.products)
  const checks = (await service.buyers()).flatMap((customerId) =>
    products.map((productId) => ({ customerId, productId })),
  )
  const given = new Set<string>()
  for (let from = 0; from < checks.length; from += CHECKS_AT_ONCE) {
    const some = checks.slice(from, from + CHECKS_AT_ONCE)
    const { status, json } = await operate('POST /entitlements/check?environment=sandbox', { checks: some })
    if (status !== 200) throw new BrokenPromise('questions are answered', `${status} ${JSON.stringify(json)}`)
    for (const [at, one] of (json.results as Json[]).entries()) {
      if (one.active) given.add(`${some[at]?.customerId} ${some[at]?.productId}`)
    }
  }
  trace(`truth: ${truth.size} of ${checks.length}`)
  const missing = [...truth].filter((one) => !given.has(one))
  const extra = [...given].filter((one) => !truth.has(one))
  if (missing.length + extra.length === 0) return
  const what = `missing ${missing.join(', ') || 'nothing'}; given without reason ${extra.join(', ') || 'nothing'}`
  throw new BrokenPromise('access equals the truth', what)
}
