/* The merchant's operator, who changes things by hand, and asks again until something is done. */

import type { Chance } from '../machine/chance.js'
import { elapsed, lasting } from '../machine/time.js'
import { trace } from '../machine/trace.js'
import { HOUR_MS } from '../story.js'
import type { Json, World } from '../world.js'
import { communityIdOf, messengerIdOf, OUTSIDERS } from './communities.js'

/** What the operator did, as far as the daemon said that it is done. */
export interface ByHand {
  readonly grants: Set<string>
  /** A customer, or a customer and a product. */
  readonly blocks: Set<string>
  /** Also by the daemon, whom the service has deleted. */
  readonly erased: Set<string>
  /** Granted for a while. */
  readonly brief: Set<string>
  /** When removals were confirmed, in milliseconds since the world began. */
  readonly confirmedAt: number[]
  /** When the erasure of each customer began that was made by hand. */
  readonly erasedAt: Map<string, number>
  /** By account in the guild, the customers whom it was ever linked to. */
  readonly holders: Map<string, Set<string>>
  /** An export that the operator has kept. */
  exported: readonly string[] | null
  /** Whether old messages were sent again. */
  replayed: boolean
  /** How many there were. */
  acts: number
  /** The end of what is being done about each customer's access. */
  readonly turns: Map<string, Promise<unknown>>
}

export const nothingByHand = (): ByHand => ({
  grants: new Set(),
  blocks: new Set(),
  erased: new Set(),
  brief: new Set(),
  confirmedAt: [],
  erasedAt: new Map(),
  holders: new Map(),
  exported: null,
  replayed: false,
  acts: 0,
  turns: new Map(),
})

/** Before asking again. */
const AGAIN_MS = 7_000
const TRIES = 60

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Asks until there is an answer that does not say to try again. */
export async function insist(world: World, words: string, body?: unknown, headers = {}): Promise<Answer> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const answer = await world.operate(words, body, headers)
    if (answer.status !== 0 && answer.status !== 429 && answer.status < 500) return answer
    await pause(lasting(AGAIN_MS))
  }
  return { status: 0, json: null }
}
type Answer = Awaited<ReturnType<World['operate']>>

/** Changes something by hand, once, however often it has to be sent. */
function change(world: World, words: string, body: object): Promise<Answer> {
  world.byHand.acts += 1
  return insist(world, words, body, { 'Idempotency-Key': `act ${world.byHand.acts}` })
}

const isDone = ({ status }: Answer): boolean => status >= 200 && status < 300

/** Starts a job, and waits for its end. Null: it ended otherwise, as by the end of its daemon. */
export async function finishJob(world: World, words: string, body: unknown, at: string): Promise<Json> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const begun = await insist(world, words, body)
    if (begun.status === 409) {
      await pause(lasting(AGAIN_MS))
      continue
    }
    if (begun.status !== 202) return null
    const path = at.replace(':id', begun.json?.id ?? '')
    for (;;) {
      const { status, json } = await insist(world, `GET ${path}`)
      if (status !== 200) return null
      if (json.state !== 'running') return json
      await pause(lasting(1_000))
    }
  }
  return null
}

const ENV = 'environment=sandbox'

/** Until then; where something lasts for longer, it changes nothing. */
export async function grantBriefly(world: World, customer: string, productId: string, ms: number) {
  const { grants, brief } = world.byHand
  if (grants.has(`${customer} ${productId}`)) return
  brief.add(`${customer} ${productId}`)
  const until = new Date(Date.now() + ms).toISOString()
  await change(world, `POST /customers/${customer}/grants?${ENV}`, { productId, until, reason: 'trial' })
}

/** Before its end. */
export async function endBriefGrant(world: World, customer: string, productId: string): Promise<void> {
  if (world.byHand.grants.has(`${customer} ${productId}`)) return
  await change(world, `DELETE /customers/${customer}/grants/${productId}?${ENV}`, {})
}

interface GivenAccounts {
  readonly communityId?: string | null
  readonly messengerId?: string | null
}

async function link(world: World, customer: string, accounts: GivenAccounts): Promise<void> {
  const { communityId } = accounts
  if (typeof communityId === 'string') {
    const own = world.byHand.holders.get(communityId) ?? new Set()
    world.byHand.holders.set(communityId, own.add(customer))
  }
  await change(world, `PUT /customers/${customer}/identities?${ENV}`, accounts)
}

/** The lines of an export of everything. Null: it could not be had. */
export async function exportLines(world: World, environment: string): Promise<readonly string[] | null> {
  const lines: string[] = []
  for (let cursor = ''; ; ) {
    const { status, json } = await world.operate(`GET /exports?environment=${environment}${cursor}`)
    if (status !== 200) return null
    lines.push(...json.lines)
    if (!json.pagination.hasMore) return lines
    cursor = `&cursor=${encodeURIComponent(json.pagination.nextCursor)}`
  }
}

/** In this many lines at a time, a tool imports them. */
const LINES_AT_ONCE = 200

type Act = (world: World, customer: string, chance: Chance) => Promise<unknown>

const product = ({ service }: World, chance: Chance): string => chance.pick(Object.values(service.products))

const ACTS: Readonly<Record<string, Act>> = {
  async grant(world, customer, chance) {
    const productId = product(world, chance)
    const answer = await change(world, `POST /customers/${customer}/grants?${ENV}`, {
      productId,
      reason: 'kind',
    })
    if (isDone(answer)) world.byHand.grants.add(`${customer} ${productId}`)
  },
  'grant for a while': (world, customer, chance) =>
    grantBriefly(world, customer, product(world, chance), (1 + chance.below(72)) * HOUR_MS),
  async revoke(world, customer, chance) {
    const own = [...world.byHand.grants].filter((one) => one.startsWith(`${customer} `))
    if (own.length === 0) return
    const granted = chance.pick(own)
    const answer = await change(
      world,
      `DELETE /customers/${customer}/grants/${granted.split(' ')[1]}?${ENV}`,
      {},
    )
    if (isDone(answer)) world.byHand.grants.delete(granted)
  },
  async block(world, customer, chance) {
    const productId = chance.is(0.5) ? product(world, chance) : null
    const path = `/customers/${customer}/blocks${productId === null ? '' : `/${productId}`}`
    const answer = await change(world, `PUT ${path}?${ENV}`, { reason: 'abuse' })
    if (isDone(answer)) world.byHand.blocks.add(productId === null ? customer : `${customer} ${productId}`)
  },
  async unblock(world, customer, chance) {
    const own = [...world.byHand.blocks].filter((one) => one.split(' ')[0] === customer)
    if (own.length === 0) return
    const block = chance.pick(own)
    const answer = await change(
      world,
      `DELETE /customers/${block.replace(' ', '/blocks/')}${block.includes(' ') ? '' : '/blocks'}?${ENV}`,
      {},
    )
    // Lifted for every product, it is lifted for each.
    const lifted = block === customer ? own : [block]
    if (isDone(answer)) for (const one of lifted) world.byHand.blocks.delete(one)
  },
  async link(world, customer, chance) {
    await link(world, customer, {
      ...(chance.is(0.8) && { communityId: chance.is(0.9) ? communityIdOf(chance.below(OUTSIDERS)) : null }),
      ...(chance.is(0.6) && {
        messengerId: chance.is(0.9) ? String(messengerIdOf(chance.below(OUTSIDERS))) : null,
      }),
    })
  },
  async 'link everyone'(world) {
    for (const [person, customer] of world.service.known().slice(0, OUTSIDERS).entries()) {
      const messengerId = String(messengerIdOf(person))
      await link(world, customer, { communityId: communityIdOf(person), messengerId })
    }
  },
  async invite(world, customer) {
    await world.operate(`POST /customers/${customer}/invites?${ENV}`, {})
  },
  async 'one-time link'(world, customer, chance) {
    const { status, json } = await world.operate(`POST /customers/${customer}/link-tokens?${ENV}`, {})
    if (status !== 201) return
    await pause(chance.below(lasting(20_000)))
    world.communities.follow(json.token, chance.below(OUTSIDERS), customer)
  },
  async erase(world, customer, chance) {
    if (!chance.is(0.6)) return
    world.byHand.erasedAt.set(customer, elapsed())
    // The service may forget it first.
    await world.service.addresses()
    const answer = await insist(world, `DELETE /customers/${customer}?${ENV}`, { reason: 'asked to' })
    // Begun is enough: whatever was sent again is about the same customer.
    world.byHand.erased.add(customer)
    trace(`erased: ${answer.status}`)
  },
  async replay(world, _, chance) {
    await finishJob(world, `POST /replays?${ENV}`, { dryRun: chance.is(0.3) }, `/replays/:id?${ENV}`)
  },
  async rebuild(world) {
    await finishJob(world, 'POST /rebuild', {}, '/rebuild')
  },
  async 'policy diff and apply'(world, _, chance) {
    world.settings.policy = chance.pick(POLICIES)
    await world.daemon.reload().catch(() => {})
    await finishJob(world, 'POST /policy/diff', {}, '/policy/diff')
    await finishJob(world, 'POST /policy/apply', {}, '/rebuild')
  },
  async 'import of an export'(world, _, chance) {
    const { byHand } = world
    const now = await exportLines(world, 'sandbox')
    if (now === null) return
    // One from before, as it was: it may hold who was erased since.
    const lines = byHand.exported !== null && chance.is(0.5) ? byHand.exported : now
    if (byHand.exported === null || chance.is(0.3)) byHand.exported = now
    for (let from = 0; from < lines.length; from += LINES_AT_ONCE) {
      const part = lines.slice(from, from + LINES_AT_ONCE).map((line) => line.trimEnd())
      const imported = await world.upload(`/imports?${ENV}&withManual=true`, `${part.join('\n')}\n`)
      trace(`imported: ${imported.status}`)
    }
  },
  async backfill(world, _, chance) {
    const done = await finishJob(
      world,
      `POST /backfills?${ENV}`,
      { dryRun: chance.is(0.2) },
      `/backfills/:id?${ENV}`,
    )
    trace(`backfill: ${done?.state}`)
  },
  async 'messages again'(world, _, chance) {
    const webhook = chance.pick(world.receivers).id
    world.byHand.replayed = true
    const to = new Date(Date.now()).toISOString()
    await insist(world, `POST /sync/messages/replay?${ENV}`, {
      webhook,
      from: '2020-01-01T00:00:00.000Z',
      to,
    })
  },
  async 'sync paused'(world, _, chance) {
    await insist(world, 'POST /sync/pause', {})
    await pause(chance.below(lasting(120_000)))
    await insist(world, 'POST /sync/resume', {})
  },
  async sweep(world) {
    await world.operate(`POST /sync/run?${ENV}`, { sweep: true, retry: {} })
  },
  async doctor(world) {
    await world.operate('GET /doctor')
  },
  async metrics(world) {
    await world.download('/metrics')
  },
}

/** What decides access: about one customer it is done one after the other, so that it is known what came last. */
const IN_TURN = ['grant', 'revoke', 'block', 'unblock']

/** Only who is linked has roles, so this comes more often than the rest. */
const LINKING_SHARE = 0.3
const LINKING = ['link', 'link everyone', 'one-time link'] as const

/** What differs from the policy that the truth goes by; null: nothing. */
const POLICIES: readonly (object | null)[] = [
  null,
  { failedRenewal: 'revoke' },
  { canceled: 'period_end' },
  { paidCycle: 'informs' },
  { completed: 'keep', lapseAfter: '45d' },
]

export async function operateSomething(world: World, chance: Chance): Promise<void> {
  const name = chance.is(LINKING_SHARE) ? chance.pick(LINKING) : chance.pick(Object.keys(ACTS))
  const act = ACTS[name] as Act
  const customers = world.service.known()
  if (customers.length === 0) return
  const customer = chance.pick(customers)
  trace(`operator ${name} ${customer}`)
  const { turns } = world.byHand
  const before = IN_TURN.includes(name) ? turns.get(customer) : undefined
  const done =
    before === undefined ? act(world, customer, chance) : before.then(() => act(world, customer, chance))
  if (IN_TURN.includes(name)) turns.set(customer, done)
  await done
}
