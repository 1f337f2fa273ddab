import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  configuredFolder,
  databaseIn,
  entitlementsOf,
  keyEntry,
  latchkey,
  ROOT,
  run,
  serve,
  startProgram,
  takeIn,
  temporaryFolder,
} from '../world.js'
import {
  createPayment,
  type Json,
  KEY,
  SECRET,
  type Service,
  startReceiver,
  startService,
  subscribe,
} from './service.js'

const where = ({ url }: Service): string => `--port ${new URL(url).port} --key ${KEY}`

async function asked(service: Service, words: string): Promise<Json> {
  const { code, stdout, stderr } = await run(temporaryFolder(), `sandbox ${words} ${where(service)} --json`)
  expect({ words, code, stderr }).toEqual({ words, code: 0, stderr: '' })
  return JSON.parse(stdout)
}

describe('latchkey sandbox', () => {
  it('creates what is asked for', async () => {
    const service = await startService()
    const product = await asked(service, 'create product --name Gold --price 2500 --currency USD --every 7')
    expect(product).toMatchObject({ name: 'Gold', priceCents: '2500', currency: 'USD', frequencyInDays: 7 })
    const customer = await asked(service, 'create customer --email a@example.com')
    const subscription = await asked(
      service,
      `create subscription --product ${product.id} --customer ${customer.id} --card tok_good`,
    )
    expect(subscription).toMatchObject({ status: 'ACTIVE', customerId: customer.id })
    const once = await asked(service, 'create product')
    expect(await asked(service, `create payment --product ${once.id} --ref r7`)).toMatchObject({
      status: 'PENDING',
      externalRef: 'r7',
    })
  })

  it('does what buyers, banks and clocks do', async () => {
    const service = await startService()
    const { id } = await createPayment(service)
    expect(await asked(service, `decline ${id} --outcome 3ds_failed`)).toMatchObject({ status: 'DECLINED' })
    expect(await asked(service, `pay ${id} --method CARD`)).toMatchObject({ status: 'COMPLETED' })
    expect(await asked(service, `refund ${id} --amount 400`)).toMatchObject({ refundedAmountCents: 400 })
    await asked(service, `chargeback ${id}`)
    const ada = await subscribe(service)
    const other = await asked(service, 'create product --price 900 --every 30')
    expect(await asked(service, `change-plan ${ada.id} --product ${other.id}`)).toMatchObject({
      applied: false,
    })
    expect(await asked(service, `decline ${ada.customerId}`)).toMatchObject({ outcome: 'soft_decline' })
    await asked(service, 'advance 31d')
    expect(await asked(service, `show ${ada.id}`)).toMatchObject({ status: 'PAST_DUE' })
    expect(await asked(service, `cancel ${ada.id}`)).toMatchObject({ status: 'CANCELED' })
    expect(await asked(service, 'faults --drop 0.5 --reorder yes')).toMatchObject({
      items: [{ drop: 0.5, reorder: true }],
    })
    expect(await asked(service, 'faults')).toMatchObject({ items: [] })
    expect(await asked(service, 'show truth')).toMatchObject({ access: [] })
  })

  it('takes names and emails for ids, and the newest of several', async () => {
    const service = await startService()
    for (const price of [1900, 4900])
      await asked(service, `create product --name Gold --price ${price} --every 30`)
    const plain = await asked(service, 'create product --name Plain --price 900 --every 30')
    const buy = 'create subscription --product Gold --email Ann@example.com --card tok_good'
    const { id, payment } = await asked(service, buy)
    expect(payment).toMatchObject({ priceCents: '4900' })
    await asked(service, 'advance 31d')
    const refunded = await asked(service, `refund ${id}`)
    expect(refunded).toMatchObject({ subscriptionId: id, status: 'REFUNDED' })
    expect(refunded.id).not.toBe(payment.id)
    expect(await asked(service, 'show ann@example.com')).toMatchObject({ id: refunded.customerId })
    expect(await asked(service, 'change-plan ann@example.com --product Plain')).toMatchObject({
      scheduledChange: { targetPriceId: plain.id },
    })
    expect(await asked(service, 'cancel ann@example.com')).toMatchObject({ id, status: 'CANCELED' })
    for (const odd of ['refund sub_x', 'refund bob@example.com', 'create payment --product Silver']) {
      expect(await run(temporaryFolder(), `sandbox ${odd} ${where(service)}`)).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/has no \w+ for "(sub_x|bob@example.com|Silver)"/),
      })
    }
  })

  it('says what the sandbox refuses, and what to do where none runs', async () => {
    const service = await startService()
    const refused = await run(temporaryFolder(), `sandbox pay pay_x ${where(service)}`)
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('PAYMENT_NOT_FOUND') })
    await service.stop()
    const gone = await run(temporaryFolder(), `sandbox show clock ${where(service)}`)
    expect(gone).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('start it with `latchkey sandbox`'),
    })
    expect(await run(temporaryFolder(), 'sandbox show clock')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--key'),
    })
  })

  it.each([
    ['create planet', 'expected product, customer, payment, subscription, endpoint'],
    ['create endpoint', 'name the address of your app with --url'],
    ['create product --every often', '--every often: expected a number'],
    ['cancel sub_1 --when later', '--when later: expected now or period-end'],
    ['advance tomorrow', "can't advance tomorrow: expected a duration such as 30d, or a time such as"],
    ['show planet', "can't show planet: expected an id that begins with pro_, cus_, pay_ or sub_, or clock,"],
    ['show truth --at noon', '--at noon: expected a time such as'],
    ['play nothing.json', 'nothing.json can\u0027t be read as a story: no such file or directory'],
    ['fly', "unknown command 'sandbox fly'"],
  ])('refuses %s before it asks', async (words, message) => {
    const refused = await run(temporaryFolder(), `sandbox ${words} --port 1 --key ${KEY}`)
    expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(message) })
  })

  it.each([
    ['a file whose folder is missing', '--file no/such/folder.db', 'there is no folder'],
    ['a file that is something else', '--file config.json', 'is not a file of a sandbox'],
    ['the database of a daemon', '--file data/latchkey.db', 'is not a file of a sandbox'],
    ['a file that is a folder', '--file .', "can't be opened"],
  ])('does not start with %s, and leaves the key of a running one alone', async (_name, words, message) => {
    const folder = configuredFolder('{ "endpoints": {} }'.padEnd(200))
    mkdirSync(join(folder, 'data'))
    await takeIn(folder, [])
    const before = readFileSync(databaseIn(folder))
    const refused = await run(folder, `sandbox start --port 0 --key ${KEY} ${words}`)
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(message) })
    expect(readdirSync(join(folder, 'data'))).not.toContain('sandbox-key.txt')
    expect(readFileSync(databaseIn(folder)).equals(before)).toBe(true)
  })

  it('says which port is taken, and how to name another', async () => {
    const service = await startService()
    const refused = await run(temporaryFolder(), `sandbox start ${where(service)}`)
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('name another port with --port'),
    })
  })

  it('registers an app, which hears what follows', async () => {
    const service = await startService()
    const receiver = await startReceiver()
    const endpoint = await asked(service, `create endpoint --url ${receiver.url} --generation v2`)
    expect(endpoint).toMatchObject({ url: receiver.url, secret: expect.stringMatching(/^whsec_/) })
    await subscribe(service)
    expect(receiver.types()).toContain('SUBSCRIPTION_CREATED')
  })

  it('moves to a day, and shows who had access at a time', async () => {
    const service = await startService()
    const { customerId, productId } = await subscribe(service)
    expect(await asked(service, 'advance 2026-01-20')).toEqual({ now: '2026-01-20T00:00:00.000Z' })
    expect(await asked(service, 'show truth --at 2026-01-10')).toMatchObject({
      access: [{ customerId, productId }],
    })
    expect(await asked(service, 'show truth --at 2025-12-01')).toMatchObject({ access: [] })
  })
})

const STORIES = join(ROOT, 'examples', 'sandbox')

describe('a story', () => {
  it.each(readdirSync(STORIES))('%s plays to its end', async (name) => {
    const service = await startService()
    const { answers } = await asked(service, `play ${join(STORIES, name)}`)
    const access = await service.truth()
    if (name === 'year-of-a-plan.json') {
      expect(answers.end).toMatchObject({ status: 'CANCELED', currentCycle: 12 })
      expect(access).toEqual([])
    } else if (name === 'refunded-upgrade.json') {
      expect(access).toMatchObject([{ productId: answers.basic.id }])
    } else {
      expect(answers.cleo).toBeDefined()
      expect(access).toEqual([])
    }
  })

  it.each([
    ['not json', '{'],
    ['no list', '{"run": "advance 1d"}'],
    ['an unknown act', '[{"run": "fly"}]'],
    ['an unknown option', '[{"run": "advance 1d --fast"}]'],
    ['an answer that nobody gave', '[{"run": "pay $ada.id"}]'],
    ['a time that is none', '[{"at": "999999999999d", "run": "show clock"}]'],
  ])('with %s is refused', async (_name, text) => {
    const service = await startService()
    const file = join(temporaryFolder(), 'story.json')
    writeFileSync(file, text)
    expect(await run(temporaryFolder(), `sandbox play ${file} ${where(service)}`)).toMatchObject({
      code: 2,
      stdout: '',
    })
  })
})

describe('latchkey sandbox beside a daemon', () => {
  it('finds the config, delivers to its sandbox endpoints, and access follows', async () => {
    const key = 'lk_sandbox_reader'
    const folder = configuredFolder({
      server: { port: 0 },
      endpoints: {
        sandbox: { environment: 'sandbox', secrets: [SECRET], aheadAtMost: '10y' },
        'sandbox-v2': { environment: 'sandbox', secrets: [`${SECRET}_2`] },
      },
      api: { keys: [{ ...keyEntry('app', key), environments: ['sandbox'] }] },
    })
    const daemon = await serve(folder)
    const program = startProgram(latchkey('sandbox', '--port', '0'), { folder })
    const [, url = ''] = await program.until(/sandbox on (http:\S+)/)
    expect(program.stdout()).toMatch(
      /delivers to http:\S+\/webhooks\/sandbox \(v3\)\ndelivers to \S+\/webhooks\/sandbox-v2 \(v2\)\nmind: [^\n]+ endpoints\.sandbox-v2\.aheadAtMost [^\n]+\n$/,
    )
    const keyFile = join(folder, 'data', 'sandbox-key.txt')
    expect(statSync(keyFile).mode & 0o777).toBe(0o600)
    expect(readFileSync(keyFile, 'utf8')).toMatch(/^sk_sandbox_\w+\n$/)

    const port = new URL(url).port
    const command = async (words: string): Promise<Json> => {
      const { code, stdout, stderr } = await run(folder, `sandbox ${words} --port ${port} --json`)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      return JSON.parse(stdout)
    }
    const { id: product } = await command('create product --every 30')
    const { customerId, payment } = await command(`create subscription --product ${product} --card tok_good`)
    await command('advance 0s')
    expect(await entitlementsOf(daemon, customerId, key)).toMatchObject([
      { productId: product, active: true },
    ])
    await command(`refund ${payment.id}`)
    expect(await entitlementsOf(daemon, customerId, key)).toMatchObject([
      { productId: product, active: false, status: 'refunded' },
    ])

    program.signal('SIGTERM')
    expect(await program.exit).toMatchObject({ code: 0, stderr: '' })
  })

  it('needs no config', async () => {
    const folder = temporaryFolder()
    const program = startProgram(
      latchkey('sandbox', 'start', '--port', '0', '--key', KEY, '--from', '2025-10-01'),
      { folder },
    )
    const [, url = ''] = await program.until(/sandbox on (http:\S+)/)
    await program.until(
      /delivers to nobody: register your app with\n {2}latchkey sandbox create endpoint --url /,
    )
    const { stdout } = await run(folder, `sandbox show clock --port ${new URL(url).port}`)
    expect(stdout).toContain('2025-10-01T00:00:00.000Z')
  })
})
