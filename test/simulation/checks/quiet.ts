/* Brings a world to rest, and looks whether it kept its promises. */

import { LINKED } from '../../../src/sync/telegram/handle-update.js'
import { elapsed, pass, until, untilHolds } from '../machine/time.js'
import { trace } from '../machine/trace.js'
import { communityIdOf, messengerIdOf, PEOPLE, ROLES } from '../parts/communities.js'
import { deliverLive, liveEmailOf } from '../parts/live.js'
import { exportLines, finishJob, insist } from '../parts/operator.js'
import { DAY_MS, HOUR_MS } from '../story.js'
import { BrokenPromise, type Json, MINUTE_MS, REMOVALS_AT_MOST, type World } from '../world.js'
import { everyPage } from './audit.js'

/** As many as one question may have. */
const CHECKS_AT_ONCE = 1_000
const ENV = 'environment=sandbox'
const numberOf = (cursor: string): number => Number(cursor.slice(cursor.lastIndexOf('.') + 1))

/** Everything works again, and what was lost is sent again. Then all must be as it should. */
export async function beQuiet(world: World): Promise<void> {
  const { ground, service } = world
  await heal(world)
  await ground.catchUp(service)
  await pass(2 * MINUTE_MS)
  for (let left = 1; left > 0; ) left = await until('what was lost', service.sendAgain(), DAY_MS)
  for (let tries = 0; tries < 3 && world.live.unsent.length > 0; tries += 1)
    await until('what was sold', deliverLive(world), MINUTE_MS)
  await pass(2 * MINUTE_MS)
  // A fixed term may have ended meanwhile: by the daemon's clock at once, by the service's once that is advanced.
  await until('what fell due since', service.sandbox.advance({ to: Date.now() }), MINUTE_MS)
  // What was acknowledged counts at once, whoever is asked.
  await until('the truth', assertTruth(world), MINUTE_MS)
  await until('the answers', assertAlike(world), MINUTE_MS)
  await until('the other environment', assertApart(world), MINUTE_MS)
  await until('the verification', assertVerified(world), HOUR_MS)
  await untilHolds(() => assertFollowed(world))
  assertBounded(world)
  await untilHolds(() => until('the messages', assertMessages(world), MINUTE_MS))
  await untilHolds(() => until('the apps', assertApps(world), MINUTE_MS))
  await untilHolds(() => until('one-time links', assertLinked(world), MINUTE_MS))
  await until('what was erased', assertErased(world), MINUTE_MS)
  await assertSmall(world)
}

/** A short world has not seen enough. */
const GROWN_UP_MS = 15 * DAY_MS
/** In a small world a daemon gathers a few hundred KB. */
const KEPT_AT_MOST_BYTES = 3_000_000

/** The daemon has gathered little since it started: what a fresh one lacks of it. Only with `--expose-gc`. */
async function assertSmall({ daemon }: World): Promise<void> {
  if (elapsed() < GROWN_UP_MS) return
  const before = heldBytes()
  await until('a restart', daemon.restart(), MINUTE_MS)
  await pass(MINUTE_MS)
  const gathered = before - heldBytes()
  if (gathered > KEPT_AT_MOST_BYTES)
    throw new BrokenPromise('memory does not grow', `the daemon has gathered ${gathered} bytes`)
}

function heldBytes(): number {
  globalThis.gc?.()
  return globalThis.gc === undefined ? 0 : process.memoryUsage().heapUsed
}

async function heal(world: World): Promise<void> {
  const { daemon, service, communities, receivers, apps, settings } = world
  await until('the daemon', daemon.heal(), MINUTE_MS)
  await until('recovery', communities.recover(), MINUTE_MS)
  for (const receiver of receivers) receiver.recover()
  for (const app of apps) app.begin()
  await until('the end of faults', service.sandbox.faults(null), MINUTE_MS)
  const hadPolicy = settings.policy
  settings.policy = null
  settings.disabled = null
  await until('a reload', daemon.reload(), MINUTE_MS)
  trace(`policy ${JSON.stringify(hadPolicy)}`)
  const policy = await until('the policy', insist(world, 'GET /policy'), MINUTE_MS)
  const { inForce, configured, unfinishedRebuild } = policy.json
  if (JSON.stringify(inForce) !== JSON.stringify(configured) || unfinishedRebuild) {
    const done = await until('a rebuild', finishJob(world, 'POST /policy/apply', {}, '/rebuild'), HOUR_MS)
    if (done?.state !== 'done') throw new BrokenPromise('a rebuild ends', JSON.stringify(done))
    const { json } = await until('the policy', world.operate('GET /policy'), MINUTE_MS)
    if (JSON.stringify(json.inForce) !== JSON.stringify(json.configured))
      throw new BrokenPromise('an applied policy is in force', JSON.stringify(json))
  }
  await until('the end of a pause', insist(world, 'POST /sync/resume', {}), MINUTE_MS)
}

/** Who has access to what, of all who bought anything. */
async function givenAccess(world: World): Promise<ReadonlySet<string>> {
  const { service, operate } = world
  const products = Object.values(service.products)
  const checks = (await service.buyers()).flatMap((customerId) =>
    products.map((productId) => ({ customerId, productId })),
  )
  const given = new Set<string>()
  for (let from = 0; from < checks.length; from += CHECKS_AT_ONCE) {
    const some = checks.slice(from, from + CHECKS_AT_ONCE)
    const { status, json } = await operate(`POST /entitlements/check?${ENV}`, { checks: some })
    if (status !== 200) throw new BrokenPromise('questions are answered', `${status} ${JSON.stringify(json)}`)
    for (const [at, one] of (json.results as Json[]).entries()) {
      if (one.active) given.add(`${some[at]?.customerId} ${some[at]?.productId}`)
    }
  }
  return given
}

async function assertTruth(world: World): Promise<void> {
  const { service, byHand } = world
  const { access } = await service.data('GET /sandbox/truth')
  const bought = (access as Json[]).map(({ customerId, productId }) => `${customerId} ${productId}`)
  const isBlocked = (one: string) => byHand.blocks.has(one) || byHand.blocks.has(one.split(' ')[0] ?? '')
  const isUnknown = (one: string) => byHand.erased.has(one.split(' ')[0] ?? '') || byHand.brief.has(one)
  const due = new Set([...bought, ...byHand.grants].filter((one) => !isBlocked(one)))
  const given = await givenAccess(world)
  trace(`truth: ${due.size}`)
  const missing = [...due].filter((one) => !given.has(one) && !isUnknown(one))
  const extra = [...given].filter((one) => !due.has(one) && !isUnknown(one))
  if (missing.length + extra.length === 0) return
  const what = `missing ${missing.join(', ') || 'nothing'}; given without reason ${extra.join(', ') || 'nothing'}`
  throw new BrokenPromise('access equals the truth', what)
}

/** Of two daemons, each is asked so. */
const ASKED_TIMES = 3

/** Whoever is asked about a customer, nobody answers what was true before. */
async function assertAlike(world: World): Promise<void> {
  const given = await givenAccess(world)
  for (const customerId of await world.service.buyers()) {
    for (let times = 0; times < ASKED_TIMES; times += 1) {
      const { status, json } = await world.operate(`GET /entitlements/${customerId}?${ENV}`)
      for (const { productId, active } of status === 200 ? json.entitlements : []) {
        const what = `${customerId} ${productId}`
        if (active !== given.has(what) && !world.byHand.brief.has(what))
          throw new BrokenPromise('answers are alike', `${what} is said to be ${active}`)
      }
    }
  }
}

/** All that an export holds, readable. */
async function exportedText(world: World, environment: string): Promise<string> {
  const lines = await exportLines(world, environment)
  if (lines === null) throw new BrokenPromise('questions are answered', 'the export')
  const bodies = lines.map((line) => Buffer.from(JSON.parse(line).bodyBase64 ?? '', 'base64').toString())
  return [...lines, ...bodies].join('\n')
}

/** Who has access in the live environment follows from what was sold there, and so does all that is known there. */
async function assertApart(world: World): Promise<void> {
  const { service, live, operate } = world
  if (live.unsent.length > 0) throw new BrokenPromise('deliveries are taken', live.unsent[0]?.body ?? '')
  const sold = [...live.sales.values()]
  const due = new Set(
    sold.filter((one) => !one.isRefunded).map(({ customerId, productId }) => `${customerId} ${productId}`),
  )
  const checks = (await service.buyers()).flatMap((customerId) =>
    Object.values(service.products).map((productId) => ({ customerId, productId })),
  )
  for (let from = 0; from < checks.length; from += CHECKS_AT_ONCE) {
    const some = checks.slice(from, from + CHECKS_AT_ONCE)
    const { json } = await operate('POST /entitlements/check?environment=live', { checks: some })
    for (const [at, one] of (json.results as Json[]).entries()) {
      const what = `${some[at]?.customerId} ${some[at]?.productId}`
      if (one.active !== due.has(what)) throw new BrokenPromise('environments never meet', `live: ${what}`)
    }
  }
  const text = await exportedText(world, 'live')
  trace(`live: ${sold.length} sold, ${due.size} left`)
  if (text.includes('@example.com')) throw new BrokenPromise('environments never meet', 'a foreign address')
  const lacking = sold.find(({ customerId }) => !text.includes(liveEmailOf(customerId)))
  if (lacking !== undefined)
    throw new BrokenPromise('environments never meet', `${lacking.customerId} was erased elsewhere`)
  for (const { name, seen } of world.apps) {
    if (seen.some(({ environment }) => environment !== 'sandbox'))
      throw new BrokenPromise('environments never meet', `${name} saw what it may not read`)
  }
}

async function assertVerified(world: World): Promise<void> {
  const report = await finishJob(world, 'POST /rebuild/verification', {}, '/rebuild/verification')
  if (report?.state !== 'done' || report.differences.count > 0) {
    throw new BrokenPromise('a verification finds nothing', JSON.stringify(report))
  }
}

/** Lets sync finish, and confirms what waits; then roles and the group are as access says. */
async function assertFollowed(world: World): Promise<void> {
  const { operate } = world
  for (let round = 0; round < 6; round += 1) {
    await until('a sweep', operate(`POST /sync/run?${ENV}`, { sweep: true, retry: {} }), 10 * MINUTE_MS)
    const plan = await until('a plan', operate(`GET /sync/plan?${ENV}`), MINUTE_MS)
    if (plan.json.hash !== null) {
      world.byHand.confirmedAt.push(elapsed())
      const confirmed = operate(`POST /sync/run?${ENV}`, { confirm: plan.json.hash })
      await until('a confirmation', confirmed, 10 * MINUTE_MS)
    }
    // Nothing is left to do: no call is due, after a failure or at once.
    if (plan.json.calls.length === 0) break
    await pass(2 * MINUTE_MS)
  }
  await until('the roles', assertRoles(world), MINUTE_MS)
}

/** Within an hour, no more people lost a role than may without an operator. */
function assertBounded({ communities, daemon, byHand }: World): void {
  const isBetween = (from: number, to: number) => (at: number) => at >= from && at <= to
  for (const [name, roleId] of Object.entries(ROLES)) {
    const own = communities.changes.filter((one) => one.roleId === roleId)
    for (const [index, { at, action }] of own.entries()) {
      const from = at - HOUR_MS
      // What was confirmed is done within the next minutes, and a wrong clock has other hours.
      if (byHand.confirmedAt.some(isBetween(from - HOUR_MS, at))) continue
      if (action === 'give' || daemon.clockSetAt.some(isBetween(from, at))) continue
      const last = new Map(
        own.filter((one) => one.at > from && one.at <= at).map((one) => [one.accountId, one.action]),
      )
      // To whom it was due again, and who gets it next, counts as a member before.
      const isGivenBack = (accountId: string) => {
        const next = own.slice(index + 1).find((one) => one.accountId === accountId)
        const within = at + MINUTE_MS
        return next?.action === 'give' && (next.askedAt <= within || communities.wasTroubled(at, within))
      }
      // Nothing is left of who was erased, so what they lost is not counted: at once, or after it waited, even for days.
      const isForgotten = (accountId: string) =>
        [...(byHand.holders.get(accountId) ?? [])].some((customer) => {
          const erasedAt = byHand.erasedAt.get(customer)
          // Of whom the daemon has erased by itself, only that it has.
          return erasedAt === undefined ? byHand.erased.has(customer) : erasedAt <= at
        })
      const taken = [...last].flatMap(([accountId, one]) =>
        one === 'take' && !isGivenBack(accountId) && !isForgotten(accountId) ? [accountId] : [],
      )
      if (taken.length > REMOVALS_AT_MOST)
        throw new BrokenPromise('removals over the bound wait', `${taken.join()} lost ${name} until ${at}`)
    }
  }
}

async function assertRoles(world: World): Promise<void> {
  const { service, communities, settings, operate } = world
  const { guild } = communities.discord
  const { products } = service
  const [team, pro] = [[products.team], [products.pro, products.yearly]]
  const { isTeamSilver, isProSilver } = settings
  const opening = {
    gold: [...(isProSilver ? [] : pro), ...(isTeamSilver ? [] : team)],
    silver: [products.basic, products.course, ...(isTeamSilver ? team : []), ...(isProSilver ? pro : [])],
    group: [products.coins, products.book, ...(isTeamSilver ? [] : team)],
  }
  const given = await givenAccess(world)
  const entitled = { gold: new Set<string>(), silver: new Set<string>(), group: new Set<string>() }
  for (const customerId of await service.buyers()) {
    const { status, json } = await operate(`GET /customers/${customerId}?${ENV}`)
    if (status !== 200) continue
    for (const name of ['gold', 'silver', 'group'] as const) {
      if (!opening[name].some((productId) => given.has(`${customerId} ${productId}`))) continue
      const account = json.identities[name === 'group' ? 'messengerId' : 'communityId']?.value
      if (account) entitled[name].add(account)
    }
  }
  for (let person = 0; person < PEOPLE; person += 1) {
    const [community, messenger] = [communityIdOf(person), String(messengerIdOf(person))]
    for (const name of ['gold', 'silver'] as const) {
      if (!guild.isMember(community)) continue
      const [isDue, has, isGuest] = [
        entitled[name].has(community),
        guild.rolesOf(community).includes(ROLES[name]),
        communities.guests.has(`${name} ${person}`),
      ]
      if (isDue && !has) throw new BrokenPromise('roles follow access', `person ${person} lacks ${name}`)
      if (isGuest && !has) throw new BrokenPromise('nobody whom staff added is touched', `${name} ${person}`)
      if (has && !isDue && !isGuest && !communities.touched.has(`${name} ${person}`))
        throw new BrokenPromise('roles follow access', `person ${person} still has ${name}`)
    }
    const isIn = communities.group.members().includes(Number(messenger))
    const isGuest = communities.guests.has(`group ${person}`)
    if (isGuest && !isIn) throw new BrokenPromise('nobody whom staff added is touched', `group ${person}`)
    if (isIn && !entitled.group.has(messenger) && !isGuest && !communities.touched.has(`group ${person}`))
      throw new BrokenPromise('the group follows access', `person ${person} is still in the group`)
  }
}

async function changeLog(world: World): Promise<readonly Json[]> {
  const changes = await everyPage(world, `/changes?${ENV}&limit=100`)
  if (changes === null) throw new BrokenPromise('questions are answered', 'the change log')
  return changes
}

async function assertMessages(world: World): Promise<void> {
  const log = await changeLog(world)
  for (const { id, taken, refused } of world.receivers) {
    if (refused.length > 0) throw new BrokenPromise('messages are signed', `${id}: ${refused[0]}`)
    const cursors = new Set(taken.map(({ cursor }) => cursor))
    const due = log.filter(({ before, after }) => id === 'app' || before.active !== after.active)
    const lost = due.filter(
      ({ cursor, customerId }) => !cursors.has(cursor) && !world.byHand.erased.has(customerId),
    )
    if (lost.length > 0) {
      throw new BrokenPromise(
        'each message arrives',
        `${id} never got ${lost.length}: ${JSON.stringify(lost[0])}`,
      )
    }
    for (const [whose, own] of Map.groupBy(taken, ({ customerId }) => customerId)) {
      const newest = Math.max(...own.map(({ cursor }) => numberOf(cursor)))
      const last = own.at(-1)?.cursor ?? ''
      if (!world.byHand.replayed && numberOf(last) !== newest)
        throw new BrokenPromise('the newest message comes last', `${id}, ${whose}: ${last} after ${newest}`)
    }
  }
}

async function assertApps(world: World): Promise<void> {
  const log = await changeLog(world)
  const given = await givenAccess(world)
  const logged = log.map(({ cursor }) => cursor as string)
  for (const app of world.apps) {
    const [failure] = app.failures
    if (failure !== undefined) throw new BrokenPromise('streams go on', `${app.name}: ${failure}`)
    const seen = app.seen.map(({ cursor }) => cursor)
    const numbers = seen.map(numberOf)
    const back = numbers.findIndex((one, at) => at > 0 && one <= (numbers[at - 1] ?? 0))
    if (back >= 0)
      throw new BrokenPromise(
        'each change once and in order',
        `${app.name}: ${seen[back]} after ${seen[back - 1]}`,
      )
    const missed = logged.filter((cursor) => !seen.includes(cursor))
    if (missed.length > 0)
      throw new BrokenPromise('each change once and in order', `${app.name} missed ${missed[0]}`)
    for (const customerId of await world.service.buyers()) {
      const { entitlements } = await app.list(customerId)
      for (const { productId, active } of entitlements) {
        if (active === given.has(`${customerId} ${productId}`)) continue
        throw new BrokenPromise(
          'apps say what the daemon says',
          `${app.name}: ${customerId} ${productId} ${active}`,
        )
      }
    }
  }
}

/** Whoever follows a one-time link is answered, and whoever is told that their account is linked has it linked. */
async function assertLinked(world: World): Promise<void> {
  const { communities, byHand } = world
  const { links, telegram } = communities
  const accounts = Map.groupBy(links.followed, ({ messengerId }) => messengerId)
  const linked = accounts.size === 0 ? new Set() : await linkedByTelegram(world)
  for (const [messengerId, own] of accounts) {
    const told = telegram.sent.slice(links.sentBefore).filter(({ chatId }) => chatId === messengerId)
    trace(
      `${messengerId} followed ${own.length} links, and was told ${told.map(({ text }) => text).join(' ')}`,
    )
    if (told.length < own.length && !links.isTroubled)
      throw new BrokenPromise(
        'one-time links are answered',
        `${messengerId}: ${told.length} of ${own.length}`,
      )
    const isKnown = own.some(({ customerId }) => linked.has(`${customerId} ${messengerId}`))
    const isForgotten = own.some(({ customerId }) => byHand.erased.has(customerId))
    if (told.some(({ text }) => text === LINKED) && !isKnown && !isForgotten)
      throw new BrokenPromise('who is told that they are linked is', JSON.stringify(own))
  }
  Object.assign(links, { followed: [], isTroubled: false, sentBefore: telegram.sent.length })
}

/** Customers and the accounts that the bot has linked them to. */
async function linkedByTelegram(world: World): Promise<ReadonlySet<string>> {
  const lines = await exportLines(world, 'sandbox')
  if (lines === null) throw new BrokenPromise('questions are answered', 'the export')
  const acts = lines
    .map((line) => JSON.parse(line))
    .filter(({ kind }) => kind === 'manual')
    .map(({ bodyBase64 }) => JSON.parse(Buffer.from(bodyBase64, 'base64').toString()))
    .filter(({ actor, customer }) => actor === 'telegram' && customer.messengerId !== null)
  return new Set(acts.map(({ customerId, customer }) => `${customerId} ${customer.messengerId}`))
}

async function assertErased(world: World): Promise<void> {
  const { service, byHand, daemon, operate } = world
  if (byHand.erased.size === 0) return
  const names = [...(await service.addresses())]
    .filter(([, own]) => [...own].every((one) => byHand.erased.has(one)))
    .map(([address]) => address)
  const text = await exportedText(world, 'sandbox')
  const found = await operate(`GET /customers?${ENV}&query=customer&limit=100`)
  const stored: Buffer[] = []
  for await (const part of daemon.stored()) stored.push(part)
  trace(`erased: ${names.length}`)
  for (const name of names) {
    if (text.includes(name)) throw new BrokenPromise('what was erased is nowhere', `${name} is in an export`)
    if (JSON.stringify(found.json).includes(name))
      throw new BrokenPromise('what was erased is nowhere', `${name} is found`)
    if (stored.some((part) => part.includes(name)))
      throw new BrokenPromise('what was erased is nowhere', `${name} is stored`)
  }
}
