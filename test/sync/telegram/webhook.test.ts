import { describe, expect, it } from 'vitest'
import type { Messenger } from '../../../src/handlers/telegram.js'
import { LINKED } from '../../../src/sync/telegram/handle-update.js'
import { FREE_PORT, openFront } from '../../handlers/daemon-front.js'
import { startTelegram } from '../../platforms/telegram-server.js'
import { eventually } from '../../setup/eventually.js'
import { type ConnectOptions, connect, GROUP_ID } from './connected.js'

const SECRET = 'telegram_delivers-with-this'
const SECRET_HEADER = 'x-telegram-bot-api-secret-token'
const PATH = '/platforms/telegram/updates'
const USER = 4_200_001

/** Updates are delivered by the server to a front, once it is told to. */
async function delivered(options: ConnectOptions = {}, front: Parameters<typeof openFront>[0] = {}) {
  const server = await startTelegram()
  const group = server.addGroup(GROUP_ID)
  let messenger: Messenger | null = null
  const { url, webhooksUrl, logged } = await openFront({ messenger: () => messenger, ...front })
  const updates = { url: `${webhooksUrl}${PATH}`, secret: SECRET }
  const telegram = await connect(server, { updates, ...options })
  messenger = telegram
  return { server, group, telegram, url, webhooksUrl, frontLogged: () => logged }
}

const update = (userId: number) => ({
  update_id: 1,
  chat_join_request: { chat: { id: GROUP_ID, type: 'supergroup' }, from: { id: userId }, date: 1 },
})

async function post(url: string, body: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const answer = await fetch(`${url}${PATH}`, { method: 'POST', body: text, headers })
  return { status: answer.status, ...((await answer.json()) as Record<string, unknown>) }
}

describe('updates that are delivered', () => {
  it('are asked for with the secret that proves them, and handled', async () => {
    const { server, group, telegram } = await delivered()
    telegram.start()
    await eventually(() => expect(server.updates.webhook()).not.toBeNull())
    expect(server.calls('setWebhook')[0]?.payload).toMatchObject({
      secret_token: SECRET,
      allowed_updates: ['message', 'chat_join_request', 'chat_member', 'my_chat_member'],
    })
    const { token } = await telegram.linkToken({ environment: 'live', customerId: 'cus_1' })
    server.say(USER, `/start ${token}`)
    group.askToJoin(USER)
    await eventually(() => expect(server.updates.waiting()).toEqual([]))
    expect(await telegram.accountOf('cus_1')).toBe(String(USER))
    expect(server.sent).toEqual([{ chatId: USER, text: LINKED }])
    expect(telegram.asked).toEqual([String(USER)])
    expect(group.pending()).toEqual([])
    expect(server.calls('getUpdates')).toEqual([])
  })

  it('are asked for again until Telegram has taken note', async () => {
    const { server, telegram } = await delivered()
    server.fail({ method: 'setWebhook', answer: 'close', times: 2 })
    telegram.start()
    await eventually(() => expect(server.updates.webhook()).not.toBeNull())
    expect(server.calls('setWebhook').map(({ status }) => status)).toEqual([0, 0, 200])
  })

  it('come again where they could not be handled', async () => {
    let failures = 2
    const accountAsked = async () => {
      failures -= 1
      if (failures >= 0) throw new Error('the store cannot be read')
      return 'decline' as const
    }
    const { server, group, telegram } = await delivered({ accountAsked })
    telegram.start()
    await eventually(() => expect(server.updates.webhook()).not.toBeNull())
    group.askToJoin(USER)
    await eventually(() => expect(group.pending()).toEqual([]))
    expect(telegram.asked).toHaveLength(3)
  })

  it.each([
    ['no secret', {}],
    ['an empty one', { [SECRET_HEADER]: '' }],
    ['another one', { [SECRET_HEADER]: `${SECRET}x` }],
    ['its beginning', { [SECRET_HEADER]: SECRET.slice(0, -1) }],
    ['it twice', { [SECRET_HEADER]: `${SECRET}, ${SECRET}` }],
  ])('are refused with %s', async (_, headers) => {
    const { telegram, url } = await delivered()
    expect(await post(url, update(USER), headers as Record<string, string>)).toMatchObject({
      status: 401,
      code: 'unauthorized',
    })
    expect(telegram.asked).toEqual([])
  })

  it('are logged where they are refused, up to the limit of their address and once more', async () => {
    const { url, frontLogged } = await delivered()
    const refused = () => frontLogged().filter(({ msg }) => String(msg).includes('its secret token'))
    for (let n = 0; n < 40; n += 1) await post(url, update(USER), { [SECRET_HEADER]: 'of_another_program' })
    expect(refused()).toHaveLength(31)
    expect(refused()[0]).toMatchObject({
      address: '127.0.0.1',
      hint: expect.stringContaining('latchkey sync check'),
    })
    expect(JSON.stringify(frontLogged())).not.toContain('of_another_program')
  })

  const PROOF = { [SECRET_HEADER]: SECRET }

  it('are taken with the secret', async () => {
    const { telegram, url } = await delivered()
    expect(await post(url, update(USER), PROOF)).toEqual({ status: 200 })
    expect(telegram.asked).toEqual([String(USER)])
  })

  it.each([
    ['not JSON', '{', 400, 'invalid_request'],
    ['too large', `"${'x'.repeat(256 * 1024)}"`, 413, 'body_too_large'],
  ])('are refused where they are %s', async (_, body, status, code) => {
    const { url } = await delivered()
    expect(await post(url, body, PROOF)).toMatchObject({ status, code })
  })

  it.each(['null', '[]', '{"update_id":"x"}', '{"update_id":1,"chat_join_request":7}'])(
    'are taken, and told of, where they are no updates: %s',
    async (body) => {
      const { telegram, url } = await delivered()
      expect(await post(url, body, PROOF)).toEqual({ status: 200 })
      expect(telegram.logged()).toContain('ignored an unusable Telegram update')
    },
  )

  it('are taken by POST only', async () => {
    const { url } = await delivered()
    const answer = await fetch(`${url}${PATH}`, { headers: PROOF })
    expect(answer.status).toBe(405)
    expect(answer.headers.get('allow')).toBe('POST')
  })

  it('have no address where they are fetched', async () => {
    const { url } = await delivered({ updates: null })
    expect(await post(url, update(USER), PROOF)).toMatchObject({ status: 404, code: 'route_not_found' })
  })

  it('come where webhooks do, if these have an address of their own', async () => {
    const addresses = { ...FREE_PORT, trustProxy: 0, webhooks: FREE_PORT, metrics: null }
    const { url, webhooksUrl } = await delivered({}, { addresses })
    expect(await post(webhooksUrl, update(USER), PROOF)).toEqual({ status: 200 })
    expect((await post(url, update(USER), PROOF)).status).toBe(404)
  })

  it('never show their secret in a log or an answer', async () => {
    const { server, telegram, url, frontLogged } = await delivered()
    server.fail({ method: 'setWebhook', answer: 'close' })
    telegram.start()
    await eventually(() => expect(server.updates.webhook()).not.toBeNull())
    const answers = [await post(url, update(USER)), await post(url, '{', PROOF)]
    expect(JSON.stringify(answers) + telegram.logged() + JSON.stringify(frontLogged())).not.toContain(SECRET)
  })
})
