import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { BotApiError, badRequest } from '../../platforms/telegram-errors.js'
import { startTelegram } from '../../platforms/telegram-server.js'
import { eventually } from '../../setup/eventually.js'
import { type ConnectOptions, connect, GROUP_ID } from './connected.js'

const USER = 4_200_001
const SECRET = 'telegram_delivers-with-this'
const FOREIGN = { url: 'http://127.0.0.1:9/of-another-bot', secret: undefined }
const TERMINATED = new BotApiError(409, 'Conflict: terminated by other getUpdates request')
const NO_HTTPS = badRequest('bad webhook: An HTTPS URL must be provided for webhook')

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

describe('a check of updates that are fetched', () => {
  const FETCHED = found(true, 'Updates are fetched.')

  it('finds in order what is, whoever had them delivered before', async () => {
    const { server, telegram, updates } = await connected()
    server.updates.setWebhook(FOREIGN, undefined)
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
    const conflict = notFine('Another program polls the updates of this bot: stop it')
    expect(await updates()).toEqual(conflict)
    expect(telegram.receptionChanges()).toBe(1)

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
    expect(telegram.receptionChanges()).toBe(2)
  })

  it('tells of another program that has them delivered', async () => {
    const { server, telegram, updates } = await connected()
    telegram.start()
    await eventually(() => expect(server.updates.isPolled()).toBe(true))
    server.updates.setWebhook(FOREIGN, undefined)
    expect(await updates()).toEqual(notFine('Another program receives the updates of this bot by webhook'))
  })

  it('tells of what may pass by itself, and has nobody look for that', async () => {
    const { server, telegram, updates } = await connected()
    server.fail({ method: 'deleteWebhook', answer: 'close', times: 1_000 })
    telegram.start()
    await eventually(() => expect(telegram.logged()).toContain('do not arrive at the moment'))
    expect(await updates()).toEqual(notAsked('Telegram could not be reached'))
    expect(telegram.receptionChanges()).toBe(0)
  })

  it('tells where Telegram does not say', async () => {
    const { server, updates } = await connected()
    server.fail({ method: 'getWebhookInfo', answer: new BotApiError(502, 'Bad Gateway') })
    expect(await updates()).toEqual(notAsked('Telegram failed with status 502'))
  })
})

describe('a check of updates that are delivered', () => {
  const DELIVERED = found(true, 'Updates are delivered.')

  /** Telegram has taken note of an address, where a proxy answers. */
  async function agreed(options: ConnectOptions = {}) {
    const proxy = await startProxy()
    const own = { url: `${proxy.url}/platforms/telegram/updates`, secret: SECRET }
    const world = await connected({ updates: own, ...options })
    world.telegram.start()
    await eventually(() => expect(world.server.updates.webhook()).not.toBeNull())
    return { ...world, proxy, own }
  }

  it('finds in order what is, in whatever spelling Telegram tells the address', async () => {
    const { server, updates, own } = await agreed()
    expect(await updates()).toEqual(DELIVERED)
    server.updates.setWebhook({ ...own, url: own.url.replace('http:', 'HTTP:') }, undefined)
    expect(await updates()).toEqual(DELIVERED)
  })

  it('tells of an address that Telegram refuses, and has somebody look', async () => {
    const { server, telegram, updates } = await connected({
      updates: { url: 'http://127.0.0.1:9/updates', secret: SECRET },
    })
    server.fail({ method: 'setWebhook', answer: NO_HTTPS })
    telegram.start()
    await eventually(() => expect(telegram.receptionChanges()).toBe(1))
    expect(await updates()).toEqual(
      found(
        false,
        'Telegram refuses the settings in sync.telegram.updates (Bad Request: bad webhook: An HTTPS URL must be provided for webhook): correct them.',
      ),
    )
  })

  it.each([null, FOREIGN])('tells of another program that set another address: %j', async (webhook) => {
    const { server, updates } = await agreed()
    server.updates.setWebhook(webhook, undefined)
    const taken = notFine('Another program has changed the webhook of this bot')
    await eventually(async () => expect(await updates()).toEqual(taken))
  })

  it('tells that they cannot be delivered, while they wait', async () => {
    const { server, group, proxy, updates } = await agreed()
    proxy.status = 404
    group.askToJoin(USER)
    const undelivered = "Telegram can't deliver updates (Wrong response from the webhook: 404 Not Found)"
    await eventually(async () => expect(await updates()).toEqual(notFine(undelivered)))
    proxy.status = 200
    await eventually(() => expect(server.updates.waiting()).toEqual([]))
    expect(await updates()).toEqual(DELIVERED)
  })

  it('tells of no failure that was an hour ago', async () => {
    let now = Date.now()
    const { group, proxy, updates } = await agreed({ clock: () => now })
    proxy.status = 502
    group.askToJoin(USER)
    await eventually(async () => expect(await updates()).toEqual(notFine('502 Bad Gateway')))
    proxy.status = 'silent'
    now = Date.now() + 3_602_000
    expect(await updates()).toEqual(DELIVERED)
  })

  it('tells of no failure of before the start', async () => {
    const { server, group, telegram, proxy, own, updates } = await agreed()
    proxy.status = 502
    group.askToJoin(USER)
    await eventually(async () => expect(await updates()).toEqual(notFine('502 Bad Gateway')))
    proxy.status = 'silent'
    await telegram.close()
    const restarted = await connect(server, { updates: own, clock: () => Date.now() + 60_000 })
    restarted.start()
    await eventually(() => expect(server.calls('setWebhook')).toHaveLength(2))
    expect(await updatesOf(restarted.platform.check([]))).toEqual(DELIVERED)
    expect(server.updates.waiting()).toHaveLength(1)
  })
})

/** Answers every delivery by its status; `silent`: never. */
async function startProxy(): Promise<{ readonly url: string; status: number | 'silent' }> {
  const proxy = { url: '', status: 200 as number | 'silent' }
  const http = createServer((_req, res) => {
    if (proxy.status !== 'silent') res.writeHead(proxy.status).end()
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    http.closeAllConnections()
    http.close()
  })
  proxy.url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  return proxy
}
