import { setTimeout as wait } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { signBody } from '../../src/provider/signature.js'
import { PRODUCT, wireEvent } from '../daemon/wire-events.js'
import {
  configuredFolder,
  databaseIn,
  kill,
  MAY_ALL,
  openStoreAt,
  postgresAt,
  run,
  SECRET,
  type ServedDaemon,
  serve,
} from '../world.js'

/** By hand, for as long as one likes: `KILL_SECONDS=300 npx vitest run test/postgres/killed.test.ts`. */
const SECONDS = Number(process.env.KILL_SECONDS ?? 8)
const CUSTOMERS = 20_000

/** Delivers until somebody acknowledges it, as the provider does. */
async function deliver(instances: readonly ServedDaemon[], n: number, body: string): Promise<void> {
  for (let i = n; ; i += 1) {
    const timestamp = String(Math.floor(Date.now() / 1000))
    const status = await fetch(`${instances[i % instances.length]?.url}/webhooks/live`, {
      method: 'POST',
      body,
      headers: {
        'X-Webhook-Timestamp': timestamp,
        'X-Webhook-Signature': signBody(SECRET, timestamp, Buffer.from(body)),
      },
      signal: AbortSignal.timeout(5_000),
    }).then(
      (answer) => answer.status,
      () => null,
    )
    if (status === 200) return
    await wait(50)
  }
}

it('loses nothing, folds nothing twice and writes one change log while instances are killed and stopped', async () => {
  const folders = [1, 2, 3].map(() => configuredFolder(MAY_ALL))
  const [first = ''] = folders
  const env = { LATCHKEY_DATABASE_URL: (await postgresAt(databaseIn(first))).url }
  const instances = await Promise.all(folders.map((folder) => serve(folder, env)))
  const until = Date.now() + SECONDS * 1_000
  let sent = 0
  const senders = Array.from({ length: 16 }, async () => {
    while (Date.now() < until && sent < CUSTOMERS) {
      sent += 1
      const n = sent
      const told = { id: `evt_${n}`, customer: `cus_${n}`, payment: `pay_${n}` }
      await deliver(instances, n, wireEvent('payment.authorized', told))
    }
  })
  for (let round = 0; Date.now() < until - 2_000; round += 1) {
    const which = round % instances.length
    const instance = instances[which] as ServedDaemon
    await wait(500)
    if (round % 2 === 0) {
      await kill(instance)
      instances[which] = await serve(folders[which] as string, env)
    } else {
      instance.signal('SIGSTOP')
      await wait(1_000)
      instance.signal('SIGCONT')
    }
  }
  await Promise.all(senders)

  const db = await openStoreAt(databaseIn(first), { readOnly: true })
  const ids = (await db.selectFrom('events').select('event_id').execute()).map((row) => row.event_id)
  const changed = (await db.selectFrom('changes').select('customer_id').execute()).map(
    (row) => row.customer_id,
  )
  await db.destroy()
  const numbers = Array.from({ length: sent }, (_, i) => i + 1)
  expect(sent).toBeGreaterThan(50)
  expect(ids.toSorted()).toEqual(numbers.map((n) => `evt_${n}`).toSorted())
  expect(changed.toSorted()).toEqual(numbers.map((n) => `cus_${n}`).toSorted())
  expect(await run(first, 'rebuild --verify')).toMatchObject({ code: 0 })
  expect(await run(first, `check cus_1 ${PRODUCT}`)).toMatchObject({ code: 0 })
})
