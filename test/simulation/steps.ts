/* What can happen in a world. */

import { askByClient } from './checks/apps.js'
import { audit } from './checks/audit.js'
import type { Chance } from './machine/chance.js'
import { lasting } from './machine/time.js'
import { trace } from './machine/trace.js'
import { sellLive } from './parts/live.js'
import { operateSomething } from './parts/operator.js'
import { FAILURES } from './parts/receivers.js'
import { type Fault, HOUR_MS, type Kind } from './story.js'
import type { World } from './world.js'

type Perform = (world: World, chance: Chance) => Promise<void>

const STEPS: Readonly<Record<Exclude<Kind, 'quiet' | Fault>, Perform>> = {
  async act({ service, byHand, erasesDeleted }, chance) {
    const name = chance.pick(service.acts)
    const did = await service.act(name, chance)
    trace(`act ${name}: ${did}`)
    if (erasesDeleted) for (const one of service.deleted) byHand.erased.add(one)
  },
  async faults({ service }, chance) {
    const some = (share: number, most: number) => (chance.is(share) ? chance.draw() * most : 0)
    await service.sandbox.faults({
      drop: some(0.5, 0.3),
      duplicate: some(0.7, 0.6),
      damage: some(0.5, 0.5),
      delay: `${chance.is(0.5) ? chance.below(7_200) : 0}s`,
      reorder: chance.is(0.5),
    })
  },
  async 'send again'({ service }) {
    await service.sendAgain()
  },
  async reload({ daemon, settings, receivers }, chance) {
    settings.isTeamSilver = chance.is(0.5)
    settings.isProSilver = !settings.isTeamSilver && chance.is(0.4)
    settings.disabled = chance.is(0.2) ? chance.pick(receivers).id : null
    settings.hasNextSecret = chance.is(0.5)
    settings.hasNextKey = chance.is(0.5)
    await daemon.reload()
  },
  operate: operateSomething,
  async community({ communities }, chance) {
    communities.act(chance)
  },
  async receiver({ receivers }, chance) {
    const receiver = chance.pick(receivers)
    receiver.failAs(chance.pick(FAILURES))
    setTimeout(() => receiver.recover(), chance.below(lasting(12 * HOUR_MS)))
  },
  ask: askByClient,
  audit,
  live: sellLive,
  async app({ apps }, chance) {
    chance.pick(apps).restart(chance.is(0.5) ? 0 : chance.below(lasting(HOUR_MS)))
  },
}

const isOwn = (kind: Kind): kind is keyof typeof STEPS => kind in STEPS

export async function perform(world: World, kind: Exclude<Kind, 'quiet'>, chance: Chance): Promise<void> {
  if (isOwn(kind)) return STEPS[kind](world, chance)
  const fault = world.daemon.faults[kind]
  if (fault === undefined) throw new Error(`The daemon of this world knows no ${kind}.`)
  await fault(chance)
}
