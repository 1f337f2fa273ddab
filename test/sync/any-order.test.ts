import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ACCOUNTS, type AccessAct, type Act, beginStory, CUSTOMERS, FATES, type ProductId } from './story.js'
import { GOLD, HOUR, SILVER } from './syncing.js'

const product = fc.constantFrom<ProductId>('pro_gold', 'pro_platinum', 'pro_silver')
const customer = fc.constantFrom(...CUSTOMERS)
const account = fc.constantFrom(...ACCOUNTS)

const anyAccess: fc.Arbitrary<AccessAct> = fc.record({
  act: fc.constant('access'),
  customerId: customer,
  productId: product,
  active: fc.boolean(),
})
const anyFate = fc.oneof({ weight: 3, arbitrary: fc.constant('made' as const) }, fc.constantFrom(...FATES))
const anyAct: fc.Arbitrary<Act> = fc.oneof(
  { weight: 4, arbitrary: anyAccess },
  {
    weight: 5,
    arbitrary: fc.record({
      act: fc.constant('run'),
      fates: fc.array(anyFate, { maxLength: 8 }),
      killedAt: fc.option(fc.nat({ max: 30 }), { freq: 1 }),
      sweep: fc.boolean(),
      during: fc.option(anyAccess),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constant('link'),
      customerId: customer,
      accountId: fc.option(account),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      act: fc.constant('staff'),
      accountId: account,
      productId: product,
      gives: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('pass'), ms: fc.constantFrom(100, 1_000, HOUR) }) },
)

it('whatever changes, fails or is killed in whatever order, members are exactly right in the end', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyAct, { minLength: 1, maxLength: 20 }), async (acts) => {
      const story = await beginStory()
      for (const act of acts) await story.perform(act)
      await story.end()
      for (const target of [GOLD, SILVER]) {
        const entitled = story.entitled(target)
        const members = story.members(target)
        expect(members).toEqual(expect.arrayContaining([...entitled]))
        const others = members.filter((accountId) => !entitled.includes(accountId))
        expect(others.filter((accountId) => !story.wasGivenByStaff(target, accountId))).toEqual([])
      }
    }),
    { numRuns: 60 },
  )
})
