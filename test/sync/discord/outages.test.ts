import { createServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import { accountId, GOLD_ROLE_ID } from '../../platforms/discord-ids.js'
import type { DiscordState } from '../../platforms/discord-server.js'
import { eventually } from '../../setup/eventually.js'
import { portOf } from '../../setup/port-of.js'
import { failure, GOLD, startSetting } from './setting.js'

const ADA = accountId(1)

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
    const isHanging = state === 'hang' || state === 'hang-in-body'
    const { discord, platform } = await startSetting(isHanging ? { timeoutMs: 200 } : {})
    discord.guild.join(ADA)
    await discord.setState(state)

    expect(await failure(platform.observe(GOLD, ADA))).toMatchObject({
      name: 'RetryableError',
      code,
      scope: 'call',
      notBefore: null,
    })
    expect(await failure(platform.take(GOLD, ADA))).toMatchObject({ name: 'RetryableError', code })

    await discord.setState('up')
    // On a busy machine an answer may come too late once more.
    await eventually(() => platform.give(GOLD, ADA))
    expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([ADA])
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
      const location = `http://127.0.0.1:${await portOf(elsewhere)}/`
      await discord.setState({ answer: { status, headers: { location } } })

      expect(await failure(platform.give(GOLD, ADA))).toMatchObject({ code: 'discord_unreachable' })
      expect(await failure(platform.observe(GOLD, ADA))).toMatchObject({ code: 'discord_unreachable' })
      expect(visitors).toEqual([])
    },
  )
})
