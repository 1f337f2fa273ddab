import { readdirSync } from 'node:fs'
import { expect, it } from 'vitest'
import { accountId, GOLD_ROLE_ID } from '../platforms/discord-ids.js'
import { startDiscord } from '../platforms/discord-server.js'
import { BOT_TOKEN, startTelegram } from '../platforms/telegram-server.js'
import { eventually } from '../setup/eventually.js'
import { deliver, eventsOf, sentEvent, storiesOf } from '../stories.js'
import { SECRET, startReceiver, status } from '../sync/webhook/receiver.js'
import { act, CONFIG, configuredFolder, kill, MAY_ALL, readStore, run, serve } from '../world.js'
import { filesWith, followedFolder, PRODUCT, serveFollowed } from './followed.js'

it('every change of access is told at least once through kills and outages, in order, under one id each', async () => {
  const receiver = await startReceiver()
  const folder = configuredFolder({ ...CONFIG, sync: { webhook: { url: receiver.url, secret: SECRET } } })
  // Every fifth is taken and not acknowledged, every third refused.
  receiver.answerWith((res, message, count) => {
    if (count % 5 === 0) res.destroy()
    else status(count % 3 === 0 ? 503 : 204)(res, message, count)
  })
  const stories = storiesOf(0, 60)
  let daemon = await serve(folder)
  for (const part of [stories.slice(0, 30), stories.slice(30)]) {
    const before = receiver.received.length
    expect((await deliver(daemon.url, eventsOf(part))).refused).toEqual([])
    await eventually(() => expect(receiver.received.length).toBeGreaterThan(before + 10))
    await kill(daemon)
    daemon = await serve(folder)
  }
  receiver.answerWith(status(204))
  const toldOf = (customerId: string) =>
    receiver.received.filter(({ payload }) => payload.data.customerId === customerId)
  await eventually(() => {
    for (const { customerId, outcome } of stories) {
      const { active, status } = outcome
      expect(toldOf(customerId).at(-1)?.payload.data).toMatchObject({ after: { active, status } })
    }
  })
  expect(receiver.refused).toEqual([])
  for (const { customerId } of stories) {
    const told = Map.groupBy(toldOf(customerId), ({ id }) => id)
    const cursors = [...told.keys()].map((id) => Number(id.split('_')[2]))
    expect(cursors).toEqual(cursors.toSorted((a, b) => a - b))
    for (const same of told.values()) {
      expect(same.map(({ payload }) => payload)).toEqual(same.map(() => same[0]?.payload))
    }
  }
  expect(daemon.stdout() + daemon.stderr()).not.toContain(SECRET.slice(6))
})

it('an erased member is in no byte of any file once the role is taken, through kills and with a message that waits', async () => {
  const account = accountId(7)
  const words = [account, 'ada.lovelace@example.com', 'Ada Augusta Lovelace', 'countess_of_lovelace']
  const [, email, name, communityUsername] = words
  const customer = { id: 'cus_ada', email, name, communityId: account, communityUsername }
  const at = Date.UTC(2026, 0, 31, 12)
  const paid = sentEvent('evt_ada', 'payment.authorized', at, {
    id: 'pay_1',
    method: 'CARD',
    customer,
    product: PRODUCT,
  })
  const late = sentEvent('evt_late', 'payment.authorized', at, { id: 'pay_2', customer })

  const discord = await startDiscord()
  discord.guild.join(account)
  const receiver = await startReceiver()
  receiver.answerWith(status(503))
  const folder = followedFolder(discord, receiver)
  let daemon = await serveFollowed(folder)
  expect((await deliver(daemon.url, [paid])).refused).toEqual([])
  await eventually(() => expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([account]))
  await eventually(() => expect(receiver.received).not.toEqual([]))
  expect(filesWith(folder, words)).not.toEqual([])

  // The role is still to be taken: by its account alone the person is known, and that is due.
  await discord.setState('refuse')
  expect(await run(folder, 'erase cus_ada --yes')).toMatchObject({ code: 0 })
  await kill(daemon)
  daemon = await serveFollowed(folder)
  await kill(daemon)
  await discord.setState('up')
  daemon = await serveFollowed(folder)
  await eventually(() => expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([]))
  const rowsOf = (table: 'memberships' | 'messages') =>
    readStore(folder, (db) => db.selectFrom(table).selectAll().execute())
  await eventually(async () => expect(await rowsOf('memberships')).toEqual([]))
  await kill(daemon)

  daemon = await serveFollowed(folder)
  expect((await deliver(daemon.url, [paid, late])).refused).toEqual([])
  await eventually(() => expect(filesWith(folder, words)).toEqual([]))
  expect(await rowsOf('messages')).toMatchObject([{ customer_id: 'cus_ada' }, { customer_id: 'cus_ada' }])
  expect(await run(folder, 'backup after.db')).toMatchObject({ code: 0 })
  await daemon.stop()
  expect(filesWith(folder, words)).toEqual([])
  expect(readdirSync(folder)).toContain('after.db')
})

it('a member whom a kill leaves banned while they are removed is not banned in the end, and a stop ends the poll', async () => {
  const groupId = -1001234567890
  const user = 4_200_001
  const telegram = await startTelegram()
  const group = telegram.addGroup(groupId)
  const folder = configuredFolder({
    ...MAY_ALL,
    products: { pro_gold: { targets: [{ adapter: 'telegram', groupId: String(groupId) }] } },
    sync: { telegram: { botToken: `\${env:TELEGRAM_BOT_TOKEN}`, apiUrl: telegram.url } },
    log: { level: 'trace' },
  })
  const env = { TELEGRAM_BOT_TOKEN: BOT_TOKEN, DEBUG: '*' }
  const daemon = await serve(folder, env)
  await act(daemon, 'PUT', '/customers/cus_1/identities', { messengerId: String(user) })
  await act(daemon, 'POST', '/customers/cus_1/grants', { productId: 'pro_gold', reason: 'a test' })
  group.askToJoin(user)
  await eventually(() => expect(group.members()).toEqual([user]))

  telegram.fail({ method: 'unbanChatMember', answer: 'silence' })
  await act(daemon, 'DELETE', '/customers/cus_1/grants/pro_gold')
  await eventually(() => expect(telegram.calls('unbanChatMember')).toHaveLength(1))
  await kill(daemon)
  expect(group.banned()).toEqual([user])

  group.askToJoin(user + 1)
  telegram.fail({ method: 'deleteWebhook', answer: 'close' })
  const next = await serve(folder, env)
  await eventually(() => expect(group.banned()).toEqual([]))
  expect(group.members()).toEqual([])
  await eventually(() => expect(telegram.updates.waiting()).toEqual([]))
  await eventually(() => expect(telegram.updates.isPolled()).toBe(true))
  await next.stop()
  const written = [daemon, next].map(({ stdout, stderr }) => stdout() + stderr()).join('')
  expect(written).toContain('Telegram updates are received again')
  expect(written).not.toContain(BOT_TOKEN.split(':')[1])
})

it('a daemon that is stopped while a platform hangs is gone within 10 s', async () => {
  const account = accountId(7)
  const discord = await startDiscord()
  discord.guild.join(account)
  await discord.setState('hang')
  const daemon = await serveFollowed(followedFolder(discord, await startReceiver()))
  const customer = { id: 'cus_ada', communityId: account }
  const data = { id: 'pay_1', method: 'CARD', customer, product: PRODUCT }
  await deliver(daemon.url, [sentEvent('evt_ada', 'payment.authorized', Date.UTC(2026, 0, 31, 12), data)])
  await eventually(() => expect(discord.calls.some(({ status }) => status === null)).toBe(true))
  const stoppedAt = performance.now()
  daemon.signal('SIGTERM')
  expect((await daemon.exit).code).toBe(0)
  expect(performance.now() - stoppedAt).toBeLessThan(10_000)
})
