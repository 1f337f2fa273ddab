import { expect, it } from 'vitest'
import { RetryableError } from '../../src/sync/platform.js'
import type { WriteSync } from '../../src/sync/writes.js'
import { createCommunity } from './community.js'
import { type Access, GOLD, HOUR, NOON, syncing } from './syncing.js'

const CUSTOMERS = 600
const CHANGES = 6_000
/** What one look takes in, and one transaction writes. */
const CHUNK = 250

it('6,000 changes that arrive while a platform is down are taken in by small steps, and cost one call a member', async () => {
  let recoversAt = NOON
  const community = createCommunity({ concurrency: 32, clock: () => world.clock() })
  const world = await syncing({ community })
  const { access, link, start, pass, clock, db } = world
  const absorbed: number[] = []
  const writeSync: WriteSync = (name, change) => {
    if (name === 'saveDesires') absorbed.push((change as { desires: readonly unknown[] }).desires.length)
    return world.writeSync(name, change)
  }
  const sync = await start({ writeSync, removals: () => ({ atMost: CUSTOMERS, percent: 100 }) })
  for (let i = 0; i < CUSTOMERS; i += 1) await link(`cus_${i}`, `${i}`)
  // Half of them have access before, and have been given the role.
  const initial = Array.from({ length: CUSTOMERS / 2 }, (_, i) => ({ customerId: `cus_${i}`, active: true }))
  await access(...initial)
  await sync.run()
  expect(community.membersOf(GOLD)).toHaveLength(CUSTOMERS / 2)

  recoversAt = clock() + HOUR
  community.meet((call) =>
    call.at < recoversAt
      ? {
          error: new RetryableError('rate_limited', 'Later.', {
            scope: 'platform',
            notBefore: recoversAt,
            isRefused: true,
          }),
          isMade: false,
        }
      : null,
  )
  const before = community.calls.length
  const changes = Array.from({ length: CHANGES }, (_, i): Access => {
    const customer = i % CUSTOMERS
    const round = Math.floor(i / CUSTOMERS)
    // One in five flaps and ends as it began, the others end the other way round.
    const began = customer < CUSTOMERS / 2
    const isLast = round === CHANGES / CUSTOMERS - 1
    const ends = customer % 5 === 0 ? began : !began
    return { customerId: `cus_${customer}`, active: isLast ? ends : round % 2 === 0 ? !began : began }
  })
  for (let i = 0; i < CHANGES; i += CUSTOMERS / 2) {
    await access(...changes.slice(i, i + CUSTOMERS / 2))
    await sync.run()
    pass(60_000)
  }
  const wasted = community.calls.length - before
  expect(wasted).toBeLessThanOrEqual(community.concurrency)
  expect(Math.max(...absorbed)).toBeLessThanOrEqual(CHUNK)

  pass(HOUR)
  await sync.run()
  const expected = changes
    .slice(-CUSTOMERS)
    .flatMap(({ customerId, active }) => (active ? [customerId.slice(4)] : []))
  expect(community.membersOf(GOLD)).toEqual(expected.sort())
  const after = community.calls.slice(before + wasted)
  expect(after.every(({ at }) => at >= recoversAt)).toBe(true)
  const changed = after.filter(({ call }) => call !== 'observe').map(({ accountId }) => accountId)
  expect(new Set(changed).size).toBe(changed.length)
  expect(changed.filter((accountId) => Number(accountId) % 5 === 0)).toEqual([])
  expect(await db.selectFrom('sync_marks').selectAll().execute()).toEqual([])
})
