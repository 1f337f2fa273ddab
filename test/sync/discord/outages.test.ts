import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { accountId, discordId, GOLD_ROLE_ID } from '../../platforms/discord-ids.js'
import type { DiscordState } from '../../platforms/discord-server.js'
import { eventually } from '../../setup/eventually.js'
import { failure, GOLD, startSetting } from './setting.js'

const ADA = accountId(1)
const NOW = Date.UTC(2026, 0, 5)

const OUTAGES: readonly [string, DiscordState, string][] = [
  ['nobody listens', 'refuse', 'discord_unreachable'],
  ['no answer comes', 'hang', 'discord_unreachable'],
  ['an answer does not end', 'hang-in-body', 'discord_unreachable'],
  ['the connection breaks', 'lose-answers', 'discord_unreachable'],
  ['it answers 500', { status: 500 }, 'discord_failed'],
  ['it answers 502', { status: 502 }, 'discord_failed'],
  ['a proxy answers 503', { answer: { status: 503, body: '<h1>Sorry</h1>' } }, 'discord_failed'],
  ['a proxy answers 403', { answer: { status: 403, body: '<h1>Sorry</h1>' } }, 'discord_unreachable'],
  ['a proxy answers 404', { answer: { status: 404, body: '{"code":"10007"}' } }, 'discord_unreachable'],
  ['a login page answers', { answer: { status: 200, body: '<h1>Hello</h1>' } }, 'discord_unreachable'],
  ['JSON of no known shape answers', { answer: { status: 200, body: '[]' } }, 'discord_unreachable'],
]

describe('an outage', () => {
  it.each(OUTAGES)('where %s is no answer about a member, and ends', async (_, state, code) => {
    let now = NOW
    const isHanging = state === 'hang' || state === 'hang-in-body'
    const { discord, platform } = await startSetting({
      ...(isHanging && { timeoutMs: 200 }),
      clock: () => now,
    })
    discord.guild.join(ADA)
    await discord.setState(state)

    expect(await failure(platform.observe(GOLD, ADA))).toMatchObject({
      name: 'RetryableError',
      code,
      scope: 'call',
      notBefore: null,
    })
    const down = { name: 'RetryableError', code, scope: 'platform', notBefore: NOW + 1_000 }
    expect(await failure(platform.take(GOLD, ADA))).toMatchObject(down)
    const seen = discord.calls.length
    expect(await failure(platform.give(GOLD, ADA))).toMatchObject(down)
    expect(discord.calls).toHaveLength(seen)

    await discord.setState('up')
    now = NOW + 1_000
    await eventually(async () => {
      // On a busy machine an answer may come too late once more.
      if (isHanging) now += 60_000
      await platform.give(GOLD, ADA)
    })
    expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([ADA])
  })

  it('is left alone for twice as long each time, up to a quarter of a minute, until an answer comes', async () => {
    let now = NOW
    const { discord, platform } = await startSetting({ clock: () => now })
    discord.guild.join(ADA)
    await discord.setState({ status: 503 })

    async function failedFor(): Promise<number> {
      const error = await failure(platform.observe(GOLD, ADA))
      const waitMs = 'notBefore' in error && error.notBefore !== null ? error.notBefore - now : 0
      now += waitMs
      return waitMs
    }
    const waits: number[] = []
    for (let n = 0; n < 8; n += 1) waits.push(await failedFor())
    expect(waits).toEqual([0, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000])

    await discord.setState('up')
    await platform.observe(GOLD, ADA)
    await discord.setState({ status: 503 })
    expect([await failedFor(), await failedFor()]).toEqual([0, 1_000])
  })

  it('is not mistaken for one where a single call fails among others that are answered', async () => {
    const { discord, platform } = await startSetting()
    discord.guild.join(ADA)

    for (let n = 0; n < 3; n += 1) {
      await discord.setState({ status: 500 })
      expect(await failure(platform.give(GOLD, ADA))).toMatchObject({ scope: 'call', notBefore: null })
      await discord.setState('up')
      // No member of the guild: a refusal is an answer too.
      expect(await failure(platform.observe(GOLD, accountId(2)))).toMatchObject({
        code: 'member_not_in_guild',
      })
    }
  })

  it('is not called by what was waiting its turn', async () => {
    const { discord, platform } = await startSetting({ timeoutMs: 200 })
    await discord.setState('hang')

    const accounts = Array.from({ length: 6 }, (_, n) => accountId(n))
    const failures = await Promise.all(accounts.map((account) => failure(platform.give(GOLD, account))))

    expect(failures.map(({ scope }) => scope)).toEqual(['call', ...Array(5).fill('platform')])
    expect(discord.calls).toHaveLength(2)
  })

  it('counts once for calls that were under way together', async () => {
    const { discord, platform } = await startSetting({ timeoutMs: 200, clock: () => NOW })
    const elsewhere = { ...GOLD, guildId: discordId(20) }
    await discord.setState('hang')

    const failures = await Promise.all(
      [
        platform.observe(GOLD, ADA),
        platform.observe(elsewhere, ADA),
        platform.give(GOLD, ADA),
        platform.give(elsewhere, ADA),
      ].map(failure),
    )

    const pauses = failures.map((error) => ('notBefore' in error ? error.notBefore : undefined))
    expect(pauses).toEqual([null, NOW + 1_000, NOW + 1_000, NOW + 1_000])
  })

  it('is none where an answer is slow', async () => {
    const { discord, platform } = await startSetting()
    discord.guild.join(ADA)
    await discord.setState({ slowMs: 150 })

    await platform.give(GOLD, ADA)

    expect(await platform.observe(GOLD, ADA)).toBe('member')
  })
})

describe('a redirect', () => {
  it.each([301, 302, 303, 307, 308])(
    'with %i is not followed, and gives nobody the token',
    async (status) => {
      const { discord, platform } = await startSetting()
      const visitors: unknown[] = []
      const elsewhere = createServer((req, res) => {
        visitors.push(req.headers)
        res.writeHead(204).end()
      })
      await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve))
      onTestFinished(() => new Promise<void>((resolve) => elsewhere.close(() => resolve())))
      const location = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/`
      await discord.setState({ answer: { status, headers: { location } } })

      expect(await failure(platform.give(GOLD, ADA))).toMatchObject({ code: 'discord_unreachable' })
      expect(await failure(platform.observe(GOLD, ADA))).toMatchObject({ code: 'discord_unreachable' })
      expect(visitors).toEqual([])
    },
  )
})
