import { userInfo } from 'node:os'
import { describe, expect, it } from 'vitest'
import { deliveryOf } from '../ingest/wire.js'
import { sentEvent } from '../stories.js'
import { answerOf, configuredFolder, failureOf, MAY_ALL, run, serveHere, takeIn } from '../world.js'

const DAY = 86_400_000
const NOW = Date.UTC(2026, 0, 31, 12)
const now = () => NOW
/** The author of what is done at the command line. */
const USER = userInfo().username

/** An event by card, which arrives as it happens. */
async function happen(
  folder: string,
  at: number,
  [type, id, customer, product = 'pro_1']: readonly [string, string, string, string?],
) {
  const [object, action] = type.split('.')
  const facts = { customer: { id: customer }, product: { id: product }, external_ref: `ref_${customer}` }
  const { body } = sentEvent(`evt_${id}_${action}`, type, at, { object, id, method: 'CARD', ...facts })
  const delivery = deliveryOf(body, { environment: 'live', endpoint: 'live', receivedAt: at })
  await takeIn(folder, [delivery], () => at)
}

/** Two days ago two customers bought; yesterday one was refunded and a third bought; today the second lost it. */
async function shop(): Promise<string> {
  const folder = configuredFolder(MAY_ALL)
  await happen(folder, NOW - 2 * DAY, ['payment.authorized', 'pay_1', 'cus_1'])
  await happen(folder, NOW - 2 * DAY + 1, ['subscription.created', 'sub_2', 'cus_2', 'pro_2'])
  await happen(folder, NOW - DAY, ['payment.refunded', 'pay_1', 'cus_1'])
  await happen(folder, NOW - DAY + 1, ['payment.authorized', 'pay_3', 'cus_3'])
  await happen(folder, NOW - 1_000, ['subscription.expired', 'sub_2', 'cus_2', 'pro_2'])
  return folder
}

const NO_DAEMON =
  'note: no daemon answers here: if none runs, access that has ended by the clock since it stopped is not listed yet\n'

const customersIn = ({ items }: { items: readonly { customerId: string }[] }) =>
  items.map(({ customerId }) => customerId)

describe('latchkey changes', () => {
  it('says who lost access yesterday, and why', async () => {
    const folder = await shop()
    const { code, stdout, stderr } = await run(folder, 'changes --lost --from yesterday --to today', { now })
    expect({ code, stderr }).toEqual({ code: 0, stderr: NO_DAEMON })
    expect(stdout).toBe(
      '2026-01-30T12:00:00.000Z  cus_1  pro_1  lost  the payment was refunded  evt_pay_1_refunded\n',
    )
  })

  it.each([
    ['', ['cus_1', 'cus_3', 'cus_2']],
    ['--from 1h', ['cus_2']],
    ['--from 3d', ['cus_1', 'cus_2', 'cus_1', 'cus_3', 'cus_2']],
    ['--to 2026-01-30', ['cus_1', 'cus_2']],
    ['--from 3d --gained', ['cus_1', 'cus_2', 'cus_3']],
    ['--from 3d --lost', ['cus_1', 'cus_2']],
    ['--from 3d --lost --gained --product pro_2', ['cus_2', 'cus_2']],
    ['--customer cus_1', ['cus_1', 'cus_1']],
    ['--ref ref_cus_3', ['cus_3']],
    ['--payment pay_1 --from 25h', ['cus_1']],
    ['--customer nobody', []],
  ])('shows what is asked for: %s', async (options, customers) => {
    const folder = await shop()
    expect(customersIn(await answerOf(folder, `changes ${options}`, { now }))).toEqual(customers)
  })

  it('shows as many as asked for, and continues there', async () => {
    const folder = await shop()
    const first = await answerOf(folder, 'changes --from 3d --lost --limit 1', { now })
    expect([customersIn(first), first.hasMore]).toEqual([['cus_1'], true])
    const rest = await answerOf(folder, `changes --from 3d --lost --limit 1 --after ${first.next}`, { now })
    expect([customersIn(rest), rest.hasMore]).toEqual([['cus_2'], false])
    const { stderr } = await run(folder, 'changes --from 3d --lost --limit 1', { now })
    expect(stderr).toMatch(new RegExp(`^${NO_DAEMON}note: .* --after ${first.next}\\n$`))
  })

  it('gives the reason and the author of a change by hand, and tells an erasure from a revoked grant', async () => {
    const folder = await shop()
    const daemon = await serveHere(folder, { now })
    const act = (words: string) => answerOf(folder, words, { now })
    await act('grant cus_4 pro_1 --until 30d --reason support')
    await act('block cus_4 --reason chargeback')
    await act('unblock cus_4')
    await act('revoke cus_4 pro_1 --reason over')
    await act('erase cus_3 --yes --reason asked')
    const reasons = async (customer: string) => {
      const { stdout } = await run(folder, `changes --customer ${customer}`, { now })
      return stdout
        .split('\n')
        .flatMap((line) => /(?:gained|lost) +(.*?) +(?:man|evt)_/.exec(line)?.[1] ?? [])
    }
    const until = 'until 2026-03-02T12:00:00.000Z'
    expect(await reasons('cus_4')).toEqual([
      `${until} (by ${USER}: support)`,
      `blocked by hand (by ${USER}: chargeback)`,
      `unblocked ${until} (by ${USER})`,
      `it was revoked by hand (by ${USER}: over)`,
    ])
    expect((await reasons('cus_3')).at(-1)).toBe(`the customer was erased (by ${USER}: asked)`)
    await daemon.stop()
  })

  it('tells when access really ended if the clock ended it while no daemon ran', async () => {
    const folder = await shop()
    const granting = await serveHere(folder, { now })
    await answerOf(folder, 'grant cus_4 pro_1 --until 1h --reason trial', { now })
    await granting.stop()
    const later = () => NOW + DAY
    const lost = () => run(folder, 'changes --customer cus_4 --lost', { now: later })
    expect(await lost()).toEqual({ code: 0, stdout: 'no change matches\n', stderr: NO_DAEMON })
    const daemon = await serveHere(folder, { now: later })
    const line =
      /^2026-02-01T12:00:00.000Z {2}cus_4 {2}pro_1 {2}lost {2}its fixed term ends \(ended at 2026-01-31T13:00:00.000Z\) {2}by the clock\n$/
    await expect.poll(lost).toEqual({ code: 0, stdout: expect.stringMatching(line), stderr: '' })
    await daemon.stop()
  })

  it('refuses a time that is none, and a stretch that ends before it begins', async () => {
    const folder = await shop()
    for (const [options, message] of [
      [
        '--from lately',
        'Expected an ISO 8601 time, a duration back such as 1d, "yesterday" or "today" (in UTC).',
      ],
      ['--from today --to yesterday', '--from is later than --to'],
    ]) {
      expect(await run(folder, `changes ${options}`, { now })).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(message ?? ''),
      })
    }
  })
})

describe('latchkey changes --summary', () => {
  it('counts who gained and lost access, and who has it at the end of each period', async () => {
    const folder = await shop()
    expect(await run(folder, 'changes --summary day --from 3d', { now })).toEqual({
      code: 0,
      stdout:
        '2026-01-28  0 gained  0 lost                0 active\n' +
        '2026-01-29  2 gained  0 lost                2 active\n' +
        '2026-01-30  1 gained  1 lost  (1 refunded)  2 active\n' +
        '2026-01-31  0 gained  1 lost  (1 expired)   1 active\n',
      stderr: '',
    })
    const weeks = await answerOf(folder, 'changes --summary week --from 3d --product pro_2', { now })
    expect(weeks).toMatchObject({
      ...{ environment: 'live', by: 'week', productId: 'pro_2' },
      periods: [
        {
          from: '2026-01-26T00:00:00.000Z',
          to: '2026-02-02T00:00:00.000Z',
          ...{ gained: 1, lost: 1, lostBy: { expired: 1 }, active: 0 },
        },
      ],
    })
    expect(await run(folder, 'changes --summary day --lost', { now })).toMatchObject({
      code: 2,
      stderr: 'error: --summary takes --from, --to and --product alone\n',
    })
    const long = await failureOf(folder, 'changes --summary day --from 401d', { now })
    expect(long).toMatchObject({
      error: { code: 'usage', message: expect.stringContaining('at most 400') },
    })
  })
})
