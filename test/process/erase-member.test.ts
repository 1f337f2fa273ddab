import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { accountId, GOLD_ROLE_ID } from '../platforms/discord-ids.js'
import { startDiscord } from '../platforms/discord-server.js'
import { eventually } from '../setup/eventually.js'
import { startReceiver, status } from '../sync/webhook/receiver.js'
import { command, followedFolder, serveFollowed } from './followed.js'
import { deliver } from './load.js'
import { PRODUCT } from './members.js'
import { kill, readStore } from './served.js'

const ACCOUNT = accountId(7)
const WORDS = [ACCOUNT, 'ada.lovelace@example.com', 'Ada Augusta Lovelace', 'countess_of_lovelace']
const [, EMAIL, NAME, USERNAME] = WORDS
const CUSTOMER = {
  id: 'cus_ada',
  email: EMAIL,
  name: NAME,
  communityId: ACCOUNT,
  communityUsername: USERNAME,
}

function sent(id: string, data: object) {
  const body = { id, type: 'payment.authorized', createdAt: '2026-01-31T12:00:00.000Z', livemode: true, data }
  return { id, body: JSON.stringify(body) }
}

const PAID = sent('evt_ada', { id: 'pay_1', method: 'CARD', customer: CUSTOMER, product: PRODUCT })
const LATE = sent('evt_late', { id: 'pay_2', customer: CUSTOMER })

/** Every file of the folder that holds any of the words. */
function filesWithWords(folder: string): readonly string[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return files.filter((name) => {
    const file = join(folder, name)
    if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return false
    const bytes = readFileSync(file)
    return WORDS.some((word) => bytes.includes(word))
  })
}

it('an erased member is in no byte of any file once the role is taken, through kills and with a message that waits', async () => {
  const discord = await startDiscord()
  discord.guild.join(ACCOUNT)
  const receiver = await startReceiver()
  receiver.answerWith(status(503))
  const removals = { atMost: 20, percent: 100 }
  const folder = followedFolder(discord, { receiver, removals })
  let daemon = await serveFollowed(folder)
  expect((await deliver(daemon.url, [PAID])).refused).toEqual([])
  await eventually(() => expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([ACCOUNT]))
  await eventually(() => expect(receiver.received).not.toEqual([]))
  expect(filesWithWords(folder)).not.toEqual([])

  // The role is still to be taken: by its account alone the person is known, and that is due.
  await discord.setState('refuse')
  expect(await command(folder, 'erase', 'cus_ada', '--yes')).toMatchObject({ code: 0 })
  await kill(daemon)
  daemon = await serveFollowed(folder)
  await kill(daemon)
  await discord.setState('up')
  daemon = await serveFollowed(folder)
  await eventually(() => expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([]))
  await eventually(async () =>
    expect(await readStore(folder, (db) => db.selectFrom('memberships').selectAll().execute())).toEqual([]),
  )
  await kill(daemon)

  daemon = await serveFollowed(folder)
  expect((await deliver(daemon.url, [PAID, LATE])).refused).toEqual([])
  await eventually(() => expect(filesWithWords(folder)).toEqual([]))
  const waiting = await readStore(folder, (db) => db.selectFrom('messages').selectAll().execute())
  expect(waiting).toMatchObject([{ customer_id: 'cus_ada' }, { customer_id: 'cus_ada' }])
  expect(await command(folder, 'backup', 'after.db')).toMatchObject({ code: 0 })
  daemon.signal('SIGTERM')
  await daemon.exit
  expect(filesWithWords(folder)).toEqual([])
  expect(readdirSync(folder)).toContain('after.db')
})
