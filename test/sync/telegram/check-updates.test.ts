import { describe, expect, it } from 'vitest'
import { BotApiError } from '../../platforms/telegram-errors.js'
import { startTelegram } from '../../platforms/telegram-server.js'
import { eventually } from '../../setup/eventually.js'
import { type ConnectOptions, connect, GROUP_ID } from './connected.js'

const USER = 4_200_001
const TERMINATED = new BotApiError(409, 'Conflict: terminated by other getUpdates request')

async function connected(options: ConnectOptions = {}) {
  const server = await startTelegram()
  const group = server.addGroup(GROUP_ID)
  const telegram = await connect(server, options)
  return { server, group, telegram, updates: () => updatesOf(telegram.platform.check([])) }
}

/** What a check finds of updates. */
async function updatesOf(asked: ReturnType<Awaited<ReturnType<typeof connect>>['platform']['check']>) {
  return (await asked).find(({ about }) => about === 'telegram:updates')
}

const found = (isFine: boolean, message: unknown) => ({ about: 'telegram:updates', isFine, message })
const notAsked = (words: string) => ({ ...notFine(words), isUnknown: true })
const notFine = (words: string) => found(false, expect.stringContaining(words))

describe('a check of updates', () => {
  const FETCHED = found(true, 'Updates are fetched.')

  it('finds in order what is, whoever had them delivered before', async () => {
    const { server, telegram, updates } = await connected()
    server.updates.setWebhook()
    expect(await updates()).toEqual(FETCHED)
    telegram.start()
    await eventually(() => expect(server.updates.isPolled()).toBe(true))
    expect(await updates()).toEqual(FETCHED)
  })

  it('tells of another program that fetches them too, and that it has stopped once there was none for a while', async () => {
    let now = Date.parse('2026-03-01T12:00:00.000Z')
    const { server, group, telegram, updates } = await connected({ clock: () => now })
    server.fail({ method: 'getUpdates', answer: TERMINATED })
    telegram.start()
    await eventually(() => expect(server.updates.isPolled()).toBe(true))
    const conflict = notFine('Another program receives the updates of this bot: stop it')
    expect(await updates()).toEqual(conflict)
    expect(telegram.rechecks()).toBe(1)

    const receive = async (userId: number) => {
      group.askToJoin(userId)
      await eventually(() => expect(server.updates.waiting()).toEqual([]))
    }
    now += 119_999
    await receive(USER)
    expect(await updates()).toEqual(conflict)
    now += 1
    await receive(USER + 1)
    expect(await updates()).toEqual(FETCHED)
    expect(telegram.rechecks()).toBe(2)
  })

  it('tells of another program that has them delivered', async () => {
    const { server, telegram, updates } = await connected()
    telegram.start()
    await eventually(() => expect(server.updates.isPolled()).toBe(true))
    server.updates.setWebhook()
    const taken = notFine('Another program receives the updates of this bot: stop it')
    await eventually(async () => expect(await updates()).toEqual(taken))
  })

  it('tells of what may pass by itself, and has nobody look for that', async () => {
    const { server, telegram, updates } = await connected()
    server.fail({ method: 'deleteWebhook', answer: 'close', times: 1_000 })
    telegram.start()
    await eventually(() => expect(telegram.logged()).toContain('do not arrive at the moment'))
    expect(await updates()).toEqual(notAsked('Telegram could not be reached'))
    expect(telegram.rechecks()).toBe(0)
  })
})
