/* What apps are told, beside what the daemon says when it is asked. */

import type { Chance } from '../machine/chance.js'
import { lasting, times } from '../machine/time.js'
import { trace } from '../machine/trace.js'
import { endBriefGrant, grantBriefly, pause } from '../parts/operator.js'
import { HOUR_MS } from '../story.js'
import { BrokenPromise, type World } from '../world.js'

/** The client notices any change within this time, whatever happens to its stream. */
const NOTICED_MS = 20_000
/** And what it asked for may come so late. */
const TIMEOUT_MS = 2_000
/** Its own clock and the daemon's may differ by rounding. */
const ROUNDING_MS = 5

/** Asks a few times; between what the daemon says before and after, an app may say nothing else. */
export async function askByClient(world: World, chance: Chance): Promise<void> {
  const { service, apps, daemon, operate } = world
  const customers = service.known()
  if (customers.length === 0) return
  const app = chance.pick(apps)
  const customerId = chance.pick(customers)
  const productId = chance.pick(Object.values(service.products))
  const ask = async (): Promise<boolean | null> => {
    const { status, json } = await operate(`GET /entitlements/${customerId}/${productId}?environment=sandbox`)
    return status === 200 ? json.active : null
  }
  const told = () => app.check(customerId, { productId }).catch(() => null)
  const isEndedByHand = chance.is(0.4)
  if (isEndedByHand) await grantBriefly(world, customerId, productId, HOUR_MS)
  else if (chance.is(0.6)) await grantBriefly(world, customerId, productId, (10 + chance.below(50)) * 1_000)
  // So that there is something in its cache.
  await told()
  if (isEndedByHand) await endBriefGrant(world, customerId, productId)
  for (let left = times(1 + chance.below(3)); left > 0; left -= 1) {
    const before = await ask()
    await pause(NOTICED_MS + TIMEOUT_MS + lasting(chance.below(20_000)))
    const said = await told()
    const now = Date.now()
    const after = await ask()
    trace(`${app.name} is told ${said?.active}: ${before}, ${after}`)
    if (said?.active !== true) continue
    if (said.until !== null && Date.parse(said.until) + ROUNDING_MS <= now && daemon.isClockRight()) {
      world.broken.push(
        new BrokenPromise('no app shows access after its end', `${customerId} ${productId} ${said.until}`),
      )
    }
    if (before === false && after === false) {
      world.broken.push(
        new BrokenPromise(
          'apps notice changes',
          `${app.name} says that ${customerId} has ${productId} at ${now}`,
        ),
      )
    }
  }
}
