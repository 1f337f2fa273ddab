import { statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { kill, ROOT, type RunningProgram, startProgram, temporaryFolder } from '../world.js'
import {
  client,
  createPayment,
  day,
  type Json,
  KEY,
  MONTHLY,
  SECRET,
  type Service,
  startReceiver,
  startService,
  subscribe,
} from './service.js'

describe('a sandbox with a file', () => {
  it('is readable by its owner alone: it holds the secrets of endpoints', async () => {
    const file = join(temporaryFolder(), 'sandbox.db')
    await startService({ file })
    for (const part of ['', '-wal']) expect(statSync(`${file}${part}`).mode & 0o777).toBe(0o600)
  })

  it('goes on where it stopped', async () => {
    const file = join(temporaryFolder(), 'sandbox.db')
    const first = await startService({ file })
    const { id } = await subscribe(first)
    await first.advance({ to: day(40) })
    await first.stop()
    const second = await startService({ file, from: day(500) })
    expect(await second.data('GET /sandbox/clock')).toEqual({ now: day(40) })
    expect(await second.data(`GET /v3/subscriptions/${id}`)).toMatchObject({ currentCycle: 2 })
    await second.advance('30d')
    expect(await second.data(`GET /v3/subscriptions/${id}`)).toMatchObject({ currentCycle: 3 })
  })

  it('delivers what it had not delivered', async () => {
    const file = join(temporaryFolder(), 'sandbox.db')
    const receiver = await startReceiver()
    const endpoints = [{ url: receiver.url, secret: 'whsec_old', generation: 'v3' as const }]
    const first = await startService({ file, endpoints })
    const { id } = await createPayment(first)
    await first.pay(id)
    await first.stop()
    expect(receiver.take().every(({ isSigned }) => !isSigned)).toBe(true)
    const second = await startService({ file, endpoints: [{ ...endpoints[0], secret: SECRET } as never] })
    await second.advance('5m')
    expect(receiver.types()).toEqual([
      'customer.created',
      'payment.authorized',
      'payment.succeeded',
      'payment.completed',
    ])
  })

  it('refuses a second sandbox on the same file', async () => {
    const file = join(temporaryFolder(), 'sandbox.db')
    await startService({ file })
    await expect(startService({ file })).rejects.toThrow(/locked/)
  })

  it('is whole after kill -9 in the middle of an advance, and ends as one that was not killed', async () => {
    const folder = temporaryFolder()
    const killed = await ownProcess(join(folder, 'killed.db'))
    await play(killed)
    const asked = killed.call('POST /sandbox/clock/advance', { to: day(365) }).catch(() => null)
    await expect
      .poll(async () => (await killed.data('GET /sandbox/clock')).now > day(90), { interval: 1 })
      .toBe(true)
    await kill(killed.program)
    expect(await asked).toBeNull()

    const again = await ownProcess(join(folder, 'killed.db'))
    const { now } = await again.data('GET /sandbox/clock')
    expect(now < day(365)).toBe(true)
    const whole = await ownProcess(join(folder, 'whole.db'))
    await play(whole)
    for (const one of [again, whole]) await one.data('POST /sandbox/clock/advance', { to: day(365) })
    expect(await everything(again)).toEqual(await everything(whole))
  })
})

type Asked = Pick<Service, 'call' | 'data'>

async function ownProcess(file: string): Promise<Asked & { readonly program: RunningProgram }> {
  const loader = join(ROOT, 'scripts', 'typescript.js')
  const command = [
    process.execPath,
    '--import',
    loader,
    join(ROOT, 'test', 'sandbox', 'own-process.ts'),
    file,
  ]
  const program = startProgram(command, { folder: ROOT })
  const [url] = await program.until(/http:\S+/)
  return { ...client(url, KEY), program }
}

/** 150 subscriptions of 7 days: some 7,800 renewals in a year. */
async function play(service: Asked): Promise<void> {
  const { id: productId } = await service.data('POST /v3/products', { ...MONTHLY, frequencyInDays: 7 })
  for (let index = 0; index < 150; index += 1) {
    const body = {
      productId,
      customerEmail: `${index}@example.com`,
      card: { tokenizedInstrument: 'tok_good' },
    }
    await service.data('POST /v3/subscriptions', body)
  }
}

async function everything({ data }: Asked): Promise<Json> {
  const subscriptions: Json[] = []
  let cursor = ''
  do {
    const page = await data(`GET /v3/subscriptions?limit=100${cursor}`)
    subscriptions.push(...page.items)
    cursor = page.pagination.nextCursor && `&cursor=${page.pagination.nextCursor}`
  } while (cursor)
  const newest = await data('GET /v3/payments?limit=100')
  return { subscriptions, newest: newest.items, sums: await data('GET /v3/analytics') }
}
