/* What one customer is said to have, in all the ways in which the daemon says it. */

import type { Chance } from '../machine/chance.js'
import { untilHolds } from '../machine/time.js'
import { trace } from '../machine/trace.js'
import { DAY_MS } from '../story.js'
import { BrokenPromise, type Json, type World } from '../world.js'

/** An answer about an instant, and what it may depend on. */
export interface Probe {
  readonly customerId: string
  readonly at: string
  readonly answer: string
  readonly dependsOn: string
}

const ENV = 'environment=sandbox'
const numberOf = (cursor: string): number => Number(cursor.slice(cursor.lastIndexOf('.') + 1))

export async function everyPage(world: World, path: string): Promise<readonly Json[] | null> {
  const items: Json[] = []
  for (let cursor = ''; ; ) {
    const { status, json } = await world.operate(`GET ${path}${cursor}`)
    if (status !== 200) return null
    items.push(...json.items)
    if (!json.pagination.hasMore) return items
    cursor = `&cursor=${encodeURIComponent(json.pagination.nextCursor)}`
  }
}

export async function audit(world: World, chance: Chance): Promise<void> {
  const customers = world.service.known()
  if (customers.length === 0) return
  const customerId = chance.pick(customers)
  await compareWithLog(world, customerId)
  await compareWithExplanation(world, customerId, chance.pick(Object.values(world.service.products)))
  await askAgain(world)
  const at = new Date(Date.now() - chance.below(30) * DAY_MS).toISOString()
  const probe = await probeAt(world, customerId, at)
  if (probe !== null) world.probes.push(probe)
}

/** The answer is what the change log adds up to, up to its cursor. */
async function compareWithLog(world: World, customerId: string): Promise<void> {
  const { status, json } = await world.operate(`GET /entitlements/${customerId}?${ENV}`)
  if (status !== 200) return
  await untilHolds(async () => {
    const changes = await everyPage(world, `/changes?${ENV}&customerId=${customerId}&limit=100`)
    if (changes !== null) compareWithChanges(world, customerId, json, changes)
  })
}

function compareWithChanges(world: World, customerId: string, json: Json, changes: readonly Json[]): void {
  const isCounted = ({ cursor }: Json) => numberOf(cursor) <= numberOf(json.cursor)
  const said = new Map<string, Json>(json.entitlements.map((one: Json) => [one.productId, one]))
  trace(`audit ${customerId}: ${said.size}`)
  for (const productId of new Set([...changes.map((one) => one.productId), ...said.keys()])) {
    const own = changes.filter((one) => one.productId === productId)
    const ahead = world.ground.mayRunAhead ? own.filter((one) => !isCounted(one)) : []
    const logged = [own.findLast(isCounted), ...ahead].map((one) => one?.after)
    const answered = said.get(productId)
    if (logged.some((one) => isAnsweredBy(one, answered, Date.parse(json.asOf)))) continue
    const what = `${customerId} ${productId}: ${JSON.stringify(logged)} is logged, and ${JSON.stringify(answered)} answered as of ${json.asOf}, ${json.cursor}`
    throw new BrokenPromise('answers equal the change log', what)
  }
}

function isAnsweredBy(logged: Json, answered: Json, asOf: number): boolean {
  const isEnded = logged?.until !== undefined && logged?.until !== null && Date.parse(logged.until) <= asOf
  // The clock was set back, and its end is to come again.
  if (logged?.status === 'completed' && Date.parse(logged.until) > asOf) return true
  const byLog = (logged?.active ?? false) && !isEnded
  const isAlike = ['status', 'until'].every((name) => logged?.[name] === answered?.[name])
  return byLog === (answered?.active ?? false) && (!byLog || isAlike)
}

async function compareWithExplanation(world: World, customerId: string, productId: string): Promise<void> {
  const { status, json } = await world.operate(
    `GET /entitlements/${customerId}/${productId}/explanation?${ENV}`,
  )
  if (status !== 200) return
  const { entitlement } = json
  const isGiven = json.sources.some((source: Json) => {
    // A clock that was set back is behind the events of before: they count all the same.
    const dates = [
      json.asOf,
      ...source.events.map((one: Json) => one.createdAt),
      ...json.erasures.map((one: Json) => one.at),
    ]
    const asOf = Math.max(...dates.map((date) => Date.parse(date)))
    return source.intervals.some(
      (one: Json) =>
        one.productId === productId &&
        Date.parse(one.from) <= asOf &&
        (one.until === null || Date.parse(one.until) > asOf),
    )
  })
  // A block, or an erasure, ends what sources give.
  if (entitlement.active && !isGiven) {
    throw new BrokenPromise('the explanation agrees', `${customerId} ${productId} is active for no reason`)
  }
  if (
    !entitlement.active &&
    isGiven &&
    entitlement.status !== 'blocked' &&
    !world.byHand.erased.has(customerId)
  ) {
    throw new BrokenPromise(
      'the explanation agrees',
      `${customerId} ${productId} is ${entitlement.status} for no reason`,
    )
  }
}

async function probeAt(world: World, customerId: string, at: string): Promise<Probe | null> {
  const { byHand, settings } = world
  if (byHand.erased.has(customerId)) return null
  const eventIds = async () =>
    (await everyPage(world, `/events?${ENV}&customerId=${customerId}&limit=100`))
      ?.map(({ id }) => id as string)
      .sort()
      .join() ?? null
  const before = await eventIds()
  const { status, json } = await world.operate(
    `GET /entitlements/${customerId}?${ENV}&at=${encodeURIComponent(at)}`,
  )
  const events = await eventIds()
  const policy = await world.operate('GET /policy')
  // Something was stored meanwhile: nobody knows whether the answer has it.
  if (before !== events) return null
  if (status !== 200 || events === null || policy.status !== 200 || policy.json.unfinishedRebuild) return null
  const answer = json.entitlements
    .filter((one: Json) => one.active)
    .map(({ productId, since, until }: Json) => `${productId} ${since} ${until}`)
  return {
    ...{ customerId, at, answer: answer.sort().join() },
    // Other customers' events may move a payment to this one: all that is stored counts.
    dependsOn: `${events} ${JSON.stringify(policy.json.inForce)} ${JSON.stringify(settings.policy)} ${byHand.erased.size}`,
  }
}

/** About an instant, an answer changes only by events that are stored later. */
async function askAgain(world: World): Promise<void> {
  const { probes } = world
  const probe = probes.shift()
  if (probe === undefined) return
  const again = await probeAt(world, probe.customerId, probe.at)
  if (again === null || again.dependsOn !== probe.dependsOn || again.answer === probe.answer) return
  const what = `${probe.customerId} at ${probe.at}: first ${probe.answer || 'nothing'}, then ${again.answer || 'nothing'}`
  throw new BrokenPromise('answers about an instant stay', what)
}
