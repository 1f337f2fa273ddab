/* What can happen in a world. */

import { askByClient } from './checks/apps.js'
import { audit } from './checks/audit.js'
import type { Chance } from './machine/chance.js'
import { trace } from './machine/trace.js'
import { sellLive } from './parts/live.js'
import { operateSomething } from './parts/operator.js'
import { FAILURES } from './parts/receivers.js'
import { HOUR_MS, type Kind } from './story.js'
import type { World } from './world.js'

type Perform = (world: World, chance: Chance) => Promise<void>

const STEPS: Readonly<Record<Exclude<Kind, 'quiet'>, Perform>> = {
  async act({ service }, chance) {
    const name = chance.pick(service.acts)
    const did = await service.act(name, chance)
    trace(`act ${name}: ${did}`)
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
  async kill({ daemon }) {
    daemon.die()
    await daemon.start()
  },
  async 'kill at a statement'({ daemon }, chance) {
    daemon.dieWithin(1 + chance.below(200))
  },
  async restart({ daemon }) {
    await daemon.stop()
    await daemon.start()
  },
  async 'disk full'({ daemon }, chance) {
    daemon.disk.isFull = true
    await new Promise((resolve) => setTimeout(resolve, chance.below(20_000)))
    daemon.disk.isFull = false
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
    setTimeout(() => receiver.recover(), chance.below(12 * 3_600_000))
  },
  ask: askByClient,
  audit,
  live: sellLive,
  async app({ apps }, chance) {
    chance.pick(apps).restart(chance.is(0.5) ? 0 : chance.below(HOUR_MS))
  },
  async 'clock set'({ daemon }, chance) {
    daemon.setSkew(chance.below(7_200_000) - 3_600_000)
  },
}

export function perform(world: World, kind: Exclude<Kind, 'quiet'>, chance: Chance): Promise<void> {
  return STEPS[kind](world, chance)
}
