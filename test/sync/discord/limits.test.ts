import { describe, expect, it } from 'vitest'
import { accountId, discordId, GOLD_ROLE_ID } from '../../platforms/discord-ids.js'
import { failure, GOLD, startClockedSetting, startSetting } from './setting.js'

const ADA = accountId(1)
const DAY = 86_400_000
const ELSEWHERE = { ...GOLD, guildId: discordId(20) }

describe('a limit', () => {
  it.each(['user', 'shared'] as const)('of scope %s holds that kind of call in that guild', async (scope) => {
    const { discord, platform, persist } = await startClockedSetting()
    discord.guild.join(ADA)
    discord.addGuild(ELSEWHERE.guildId).join(ADA)
    discord.limit({ scope, seconds: 0.4, route: 'role' })

    const error = await failure(platform.give(GOLD, ADA))
    const limited = { name: 'RetryableError', code: 'rate_limited', scope: 'target' }
    expect(error).toMatchObject(limited)
    expect('notBefore' in error && error.notBefore).toBeGreaterThanOrEqual((discord.calls[0]?.at ?? 0) + 400)
    expect(await failure(platform.give(GOLD, ADA))).toMatchObject(limited)
    expect(await failure(platform.take(GOLD, accountId(2)))).toMatchObject(limited)
    expect(discord.calls).toHaveLength(1)
    await platform.give(ELSEWHERE, ADA)
    expect(await platform.observe(GOLD, ADA)).toBe('absent')

    await persist(() => platform.give(GOLD, ADA))
    expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([ADA])
    expect(discord.calls.filter(({ isEarly }) => isEarly)).toEqual([])
    expect(discord.invalidRequests()).toBe(scope === 'shared' ? 0 : 1)
  })

  it('on all calls holds the whole platform', async () => {
    const { discord, platform, persist } = await startClockedSetting()
    discord.guild.join(ADA)
    discord.addGuild(ELSEWHERE.guildId).join(ADA)
    discord.limit({ scope: 'global', seconds: 0.25 })

    const limited = { name: 'RetryableError', code: 'rate_limited', scope: 'platform' }
    expect(await failure(platform.observe(GOLD, ADA))).toMatchObject(limited)
    expect(await failure(platform.give(GOLD, ADA))).toMatchObject(limited)
    expect(await failure(platform.give(ELSEWHERE, ADA))).toMatchObject(limited)
    expect(discord.calls).toHaveLength(1)

    await persist(() => platform.give(ELSEWHERE, ADA))
    expect(discord.calls.map(({ status, isEarly }) => [status, isEarly])).toEqual([
      [429, false],
      [204, false],
    ])
  })

  it('holds calls too that were waiting their turn when it was told', async () => {
    const { discord, platform, persist } = await startClockedSetting()
    const accounts = Array.from({ length: 8 }, (_, n) => accountId(n))
    discord.guild.join(...accounts)
    discord.limit({ scope: 'shared', seconds: 0.3, route: 'role' })

    await Promise.all(accounts.map((account) => persist(() => platform.give(GOLD, account))))

    expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual(accounts)
    expect(discord.calls.filter(({ isEarly }) => isEarly)).toEqual([])
    expect(discord.calls.map(({ status }) => status)).toEqual([429, ...accounts.map(() => 204)])
  })

  it('that the headers announce is told before it is met', async () => {
    const { discord, platform, persist } = await startClockedSetting({
      buckets: { role: { limit: 2, perMs: 400 } },
    })
    const accounts = [accountId(1), accountId(2), accountId(3)]
    discord.guild.join(...accounts)
    const [first = '', second = '', third = ''] = accounts

    await platform.give(GOLD, first)
    await platform.give(GOLD, second)
    expect(await failure(platform.give(GOLD, third))).toMatchObject({
      name: 'RetryableError',
      code: 'rate_limited',
      scope: 'target',
    })
    expect(discord.calls).toHaveLength(2)

    await persist(() => platform.give(GOLD, third))
    expect(discord.calls.map(({ status }) => status)).toEqual([204, 204, 204])
  })

  it('is kept by many calls at once, none of them early', async () => {
    const { discord, platform, persist } = await startClockedSetting({
      buckets: { role: { limit: 5, perMs: 200 } },
    })
    const accounts = Array.from({ length: 20 }, (_, n) => accountId(n))
    discord.guild.join(...accounts)

    await Promise.all(accounts.map((account) => persist(() => platform.give(GOLD, account))))

    expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual(accounts)
    expect(discord.calls.filter(({ isEarly }) => isEarly)).toEqual([])
    expect(discord.invalidRequests()).toBeLessThanOrEqual(1)
  })

  it('that the very first answer announces is told as well', async () => {
    const { discord, platform, persist } = await startClockedSetting({
      buckets: { role: { limit: 1, perMs: 200 } },
    })
    const accounts = [accountId(1), accountId(2), accountId(3)]
    discord.guild.join(...accounts)

    for (const account of accounts) await persist(() => platform.give(GOLD, account))

    expect(discord.calls.map(({ status }) => status)).toEqual([204, 204, 204])
  })

  it('of fifty calls a second is kept without being told', async () => {
    const { discord, platform } = await startClockedSetting({ globalPerSecond: 10_000 })
    discord.guild.join(ADA)

    const answers = await Promise.allSettled(Array.from({ length: 300 }, () => platform.observe(GOLD, ADA)))

    const refused = answers.filter((answer) => answer.status === 'rejected')
    expect(refused).not.toEqual([])
    expect(refused[0]?.reason).toMatchObject({ code: 'rate_limited', scope: 'platform' })
    expect(discord.calls).toHaveLength(answers.length - refused.length)
  })

  it('of the network before Discord holds the whole platform for a minute', async () => {
    const { discord, platform } = await startSetting({ clock: () => Date.UTC(2026, 0, 5) })
    discord.limit({ scope: 'network', seconds: 1 })

    const error = await failure(platform.give(GOLD, ADA))
    expect(error).toMatchObject({ name: 'RetryableError', code: 'rate_limited', scope: 'platform' })
    const waitMs = 'notBefore' in error ? Number(error.notBefore) - Date.UTC(2026, 0, 5) : 0
    expect(waitMs).toBeGreaterThanOrEqual(60_000)
    expect(waitMs).toBeLessThan(61_000)
  })

  it('that only the header tells counts', async () => {
    const { discord, platform } = await startSetting({ clock: () => Date.UTC(2026, 0, 5) })
    await discord.setState({ answer: { status: 429, headers: { 'retry-after': '7' } } })

    const error = await failure(platform.give(GOLD, ADA))
    const waitMs = 'notBefore' in error ? Number(error.notBefore) - Date.UTC(2026, 0, 5) : 0
    expect(waitMs).toBeGreaterThanOrEqual(7_000)
    expect(waitMs).toBeLessThan(8_000)
  })

  it.each([
    ['body', { status: 429, body: '{"message":"You are limited","retry_after":1e300,"global":false}' }],
    ['header', { status: 429, headers: { 'retry-after': '1e300' } }],
  ])('of an age, by its %s, is taken for a day', async (_, answer) => {
    const { discord, platform } = await startSetting({ clock: () => Date.UTC(2026, 0, 5) })
    await discord.setState({ answer })
    expect(await failure(platform.give(GOLD, ADA))).toMatchObject({
      code: 'rate_limited',
      notBefore: Date.UTC(2026, 0, 6),
    })
  })

  it('of an age that an answer announces is taken for a day, after which calls are made again', async () => {
    let now = Date.now()
    const { discord, platform } = await startSetting({ clock: () => now })
    const headers = { 'x-ratelimit-limit': '1', 'x-ratelimit-remaining': '0', 'x-ratelimit-bucket': 'b' }
    await discord.setState({
      answer: { status: 204, headers: { ...headers, 'x-ratelimit-reset-after': '1e300' } },
    })
    await platform.give(GOLD, ADA)
    const limited = { code: 'rate_limited', notBefore: now + DAY }
    expect(await failure(platform.give(GOLD, ADA))).toMatchObject(limited)
    now += DAY
    await platform.give(GOLD, ADA)
    expect(discord.calls).toHaveLength(2)
  })

  it('of more than an hour is kept to its end', async () => {
    let now = Date.UTC(2026, 0, 5)
    const { discord, platform } = await startSetting({ clock: () => now })
    discord.guild.join(ADA)
    await discord.setState({ answer: { status: 429, headers: { 'retry-after': '7200' } } })
    await failure(platform.take(GOLD, ADA))
    await discord.setState('up')
    now += 7_199_999
    expect(await failure(platform.take(GOLD, ADA))).toMatchObject({
      code: 'rate_limited',
      notBefore: now + 1,
    })
    expect(discord.calls).toHaveLength(1)
    now += 1
    await platform.take(GOLD, ADA)
    expect(discord.calls).toHaveLength(2)
  })
})

describe('a clock that is set back', () => {
  const ANNOUNCED = {
    'x-ratelimit-limit': '1',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset-after': '60',
    'x-ratelimit-bucket': 'b',
  }

  async function clocked() {
    const setting = await startClockedSetting({ globalPerSecond: 10_000 })
    setting.discord.guild.join(ADA)
    return setting
  }

  it.each([
    ['was met', { status: 429, body: '{"message":"You are limited","retry_after":60,"global":false}' }],
    [
      'on all calls was met',
      { status: 429, body: '{"message":"You are limited","retry_after":60,"global":true}' },
    ],
    ['was announced', { status: 204, headers: ANNOUNCED }],
  ])('makes a limit that %s last no longer than it did, and no shorter', async (_, answer) => {
    const { discord, platform, clock, pass } = await clocked()
    // By this, the library knows the bucket, and would keep its limit from then on.
    const unlimited = { ...ANNOUNCED, 'x-ratelimit-remaining': '1' }
    await discord.setState({ answer: { status: 204, headers: unlimited } })
    await platform.take(GOLD, ADA)
    await discord.setState({ answer })
    await platform.take(GOLD, ADA).catch(() => {})
    await discord.setState('up')
    pass(-DAY)
    const limited = { code: 'rate_limited', notBefore: clock() + 60_000 }
    expect(await failure(platform.take(GOLD, ADA))).toMatchObject(limited)
    pass(59_999)
    expect(await failure(platform.take(GOLD, ADA))).toMatchObject(limited)
    pass(1)
    await platform.take(GOLD, ADA)
    expect(discord.calls).toHaveLength(3)
  })

  it('keeps no call waiting that the fifty a second would have let through', async () => {
    const { discord, platform, pass } = await clocked()
    for (let i = 0; i < 50; i += 1) await platform.observe(GOLD, ADA)
    pass(-DAY)
    for (let i = 0; i < 50; i += 1) await platform.observe(GOLD, ADA)
    const limited = { code: 'rate_limited', scope: 'platform' }
    expect(await failure(platform.observe(GOLD, ADA))).toMatchObject(limited)
    pass(-DAY)
    expect(await failure(platform.observe(GOLD, ADA))).toMatchObject(limited)
    pass(2_000)
    await platform.observe(GOLD, ADA)
    expect(discord.calls).toHaveLength(101)
  })
})
