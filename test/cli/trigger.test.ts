import { createServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import { chooseIds, numbered } from '../../src/cli/trigger.js'
import { normalise } from '../../src/provider/normalise.js'
import { verifySignature } from '../../src/provider/signature.js'
import { endpoint } from '../config/config-file.js'
import { freePort } from '../setup/free-port.js'
import { portOf } from '../setup/port-of.js'
import { configuredFolder, run, serveHere } from '../world.js'

const now = () => Date.UTC(2026, 0, 31, 12)
const ROTATED = [{ secret: 'whsec_old', notAfter: '2026-01-01T00:00:00Z' }, 'whsec_new']
const sandbox = endpoint('sandbox', ...ROTATED)
const live = endpoint('live', 'whsec_live')

interface ReceivedDelivery {
  readonly path: string | undefined
  readonly headers: Readonly<Record<string, string[] | undefined>>
  readonly body: Buffer
}

const bodyOf = ({ body }: ReceivedDelivery) => JSON.parse(body.toString('utf8'))
const applied = (delivery: ReceivedDelivery): object => ({
  received: true,
  id: bodyOf(delivery).id,
  disposition: 'applied',
})

function isSignedBy(secret: string, { body, headers }: ReceivedDelivery): boolean {
  const asked = { secrets: [{ secret, notAfter: null }], toleranceSeconds: 0 }
  return verifySignature({ body, headers, endpoint: asked, now: now() }).ok
}

interface Listening {
  readonly endpoints?: object
  readonly answer?: (delivery: ReceivedDelivery) => unknown
  readonly status?: number
  /** What the config says of the server, beside the port. */
  readonly server?: (port: number) => object
}

/** Listens as the daemon would, keeps what comes, and answers each delivery. */
async function listening({
  endpoints = { live, sandbox },
  answer = applied,
  status = 200,
  server: serverOf = (port) => ({ port }),
}: Listening = {}) {
  const deliveries: ReceivedDelivery[] = []
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      const delivery = { path: req.url, headers: req.headersDistinct, body: Buffer.concat(chunks) }
      deliveries.push(delivery)
      res.writeHead(status, { 'content-type': 'application/json', connection: 'close' })
      res.end(JSON.stringify(answer(delivery)))
    })
  })
  const port = await portOf(server, '0.0.0.0')
  const folder = configuredFolder({ endpoints, server: serverOf(port) })
  const trigger = (words = 'payment.authorized') => run(folder, `trigger ${words}`, { now })
  return { url: `http://127.0.0.1:${port}`, deliveries, trigger }
}

describe('latchkey trigger', () => {
  it('delivers a signed sample to the sandbox endpoint and shows what became of it', async () => {
    const { deliveries, trigger } = await listening()
    const { code, stdout, stderr } = await trigger('payment.authorized --customer cus_1 --product pro_1')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^payment\.authorized {2}evt_[0-9a-f]{24} {2}pay_[0-9a-f]{12} {2}applied\n$/)
    expect(deliveries).toHaveLength(1)
    const [delivery] = deliveries as [ReceivedDelivery]
    expect(delivery.path).toBe('/webhooks/sandbox')
    expect(delivery.headers['x-webhook-event']).toEqual(['payment.authorized'])
    const createdAt = new Date(now()).toISOString()
    expect(bodyOf(delivery)).toMatchObject({ type: 'payment.authorized', livemode: false, createdAt })
    // With the first secret that still counts.
    expect(['whsec_new', 'whsec_old'].map((secret) => isSignedBy(secret, delivery))).toEqual([true, false])
  })

  it('sends several, each about a payment of its own, one line each', async () => {
    const { deliveries, trigger } = await listening()
    const { stdout } = await trigger('payment.authorized --payment pay_x --count 3 --json')
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.map(({ paymentId }) => paymentId)).toEqual(['pay_x_1', 'pay_x_2', 'pay_x_3'])
    expect(lines.map(({ id }) => id)).toEqual(deliveries.map((delivery) => bodyOf(delivery).id))
    expect(new Set(lines.map(({ id }) => id)).size).toBe(3)
  })

  it('tells when the event happened apart from when it is sent, and speaks the legacy generation if asked to', async () => {
    const { deliveries, trigger } = await listening()
    const { stdout } = await trigger('payment.refunded --generation v2 --at 2026-01-02T03:04:05Z')
    expect(stdout).toMatch(/^PAYMENT_REFUNDED {2}evt_/)
    const [delivery] = deliveries as [ReceivedDelivery]
    expect(bodyOf(delivery)).toMatchObject({
      type: 'PAYMENT_REFUNDED',
      createdAt: '2026-01-02T03:04:05.000Z',
    })
    expect(isSignedBy('whsec_new', delivery)).toBe(true)
  })

  const PERSON = '--email ada@example.com --external-ref order_1 --metadata {"plan":"gold"}'
  const TOLD = { externalRef: 'order_1', metadata: { plan: 'gold' } }
  const END = Date.UTC(2026, 5, 1)
  it.each([
    [
      `subscription.renewed ${PERSON} --period-end 2026-06-01 --cancel-at-period-end`,
      { email: 'ada@example.com' },
      { cancelAtPeriodEnd: true, expiresAt: END },
      undefined,
    ],
    [
      `subscription.canceled ${PERSON} --cancel-at-period-end`,
      { email: 'ada@example.com' },
      { cancelAtPeriodEnd: true, expiresAt: now() + 30 * 86_400_000 },
      undefined,
    ],
    [
      `subscription.canceled ${PERSON}`,
      { email: 'ada@example.com' },
      { cancelAtPeriodEnd: false, expiresAt: now() },
      undefined,
    ],
    [
      `SUBSCRIPTION_RENEWED ${PERSON} --period-end 2026-06-01 --community 11 --messenger 12`,
      { communityId: '11', messengerId: '12' },
      { expiresAt: END },
      '1900',
    ],
    [
      `PAYMENT_SUCCESS ${PERSON} --amount 250 --community 11 --messenger 12`,
      { communityId: '11', messengerId: '12' },
      {},
      '250',
    ],
    [`payment.succeeded ${PERSON} --amount 250`, { email: 'ada@example.com' }, {}, '250'],
  ])('%s sends what it was given, as the daemon reads it', async (words, customer, told, price) => {
    const { deliveries, trigger } = await listening()
    expect(await trigger(words)).toMatchObject({ code: 0 })
    const [delivery] = deliveries as [ReceivedDelivery]
    expect(/"price_?cents":"(\d+)"/i.exec(delivery.body.toString())?.[1]).toBe(price)
    expect(normalise(delivery.body, { environment: 'sandbox', receivedAt: now() })).toMatchObject({
      ok: true,
      event: { customer, ...TOLD, ...told },
    })
  })

  it('goes to a live endpoint with --live alone', async () => {
    const { deliveries, trigger } = await listening()
    for (const options of ['--live', '--live --endpoint live']) {
      expect(await trigger(`payment.authorized ${options}`)).toMatchObject({ code: 0 })
    }
    expect(deliveries.map((one) => [one.path, bodyOf(one).livemode])).toEqual([
      ['/webhooks/live', true],
      ['/webhooks/live', true],
    ])
  })

  it.each([
    ['held', '--customer, --product or --rail'],
    ['quarantined', "quarantined: stored, but not usable; the daemon's log says why"],
  ])(
    'hints once, for people, at what a delivery that is %s waits for or lacks',
    async (disposition, hint) => {
      const { trigger } = await listening({ answer: (delivery) => ({ ...applied(delivery), disposition }) })
      const { code, stderr } = await trigger('payment.authorized --count 2')
      expect([code, stderr.split('\n')]).toEqual([0, [expect.stringContaining(hint), '']])
      expect(await trigger('payment.authorized --count 2 --json')).toMatchObject({ code: 0, stderr: '' })
    },
  )

  const noSandbox =
    'error: no sandbox endpoint is configured: add one to the config, or add --live to change live access\n'
  it.each<[string, string, object?]>([
    ['payment.authorized --endpoint live', 'add --live'],
    ['payment.authorized --endpoint sandbox --live', 'leave out --live'],
    ['payment.authorized --endpoint v9', 'configured: live, sandbox'],
    [
      'payment.authorised',
      'there is no event type "payment.authorised": `latchkey trigger --help` lists them all\n',
    ],
    ['PAYMENT_SUCESS --generation v2', 'there is no v2 event type "PAYMENT_SUCESS": '],
    ['payment.authorized --community 11', 'payment.authorized of v3 names no account: add --generation v2'],
    ['SUBSCRIPTION_RENEWED --cancel-at-period-end', 'leave it out'],
    ['payment.authorized --metadata gold', 'Expected a JSON object with text values'],
    ['payment.authorized', noSandbox, { live }],
    [
      'payment.authorized',
      'error: every secret of the endpoint sandbox has passed its notAfter',
      { sandbox: endpoint('sandbox', ROTATED[0]) },
    ],
  ])('sends nothing and exits 2 for %s: %s', async (words, message, endpoints = { live, sandbox }) => {
    const { deliveries, trigger } = await listening({ endpoints })
    const { code, stdout, stderr } = await trigger(words)
    expect({ code, stdout, sent: deliveries.length }).toEqual({ code: 2, stdout: '', sent: 0 })
    expect(stderr).toContain(message)
  })

  it('goes to the listener for webhooks where there is one, and reaches a wildcard at loopback', async () => {
    const { deliveries, trigger } = await listening({
      server: (port) => ({ port: 1, webhooks: { host: '0.0.0.0', port } }),
    })
    expect(await trigger()).toMatchObject({ code: 0 })
    expect(deliveries).toHaveLength(1)
  })

  it('goes where the running daemon listens, whatever the config says', async () => {
    const folder = configuredFolder({ endpoints: { sandbox } })
    await serveHere(folder)
    expect(await run(folder, 'trigger payment.authorized')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/ {2}applied\n$/),
    })
  })

  it('needs --url where the system chose the port', async () => {
    const { url, deliveries, trigger } = await listening({ server: () => ({ port: 0 }) })
    expect(await trigger()).toMatchObject({ code: 2 })
    expect(await trigger(`payment.authorized --url ${url}/`)).toMatchObject({ code: 0 })
    expect(deliveries.map(({ path }) => path)).toEqual(['/webhooks/sandbox'])
  })

  it('exits 1 where it is refused, where no daemon answers, and where what answers is none', async () => {
    const problem = { code: 'signature_invalid', detail: 'No secret signed this.' }
    const refusing = await listening({ answer: () => problem, status: 401 })
    const stderr = 'error: the daemon answered 401: No secret signed this.\n'
    expect(await refusing.trigger()).toEqual({ code: 1, stdout: '', stderr })

    const other = await (await listening({ answer: () => 'hello' })).trigger()
    const noDaemon = expect.stringContaining('is not a Latchkey daemon')
    expect(other).toMatchObject({ code: 1, stderr: noDaemon })

    const port = await freePort()
    const nobody = await (await listening({ server: () => ({ port }) })).trigger('payment.authorized --json')
    expect([nobody.code, JSON.parse(nobody.stderr)]).toMatchObject([
      1,
      { error: { code: 'daemon_unreachable' } },
    ])
  })
})

describe('what a sample is about', () => {
  const PAYMENT = chooseIds('payment.authorized', {}).paymentId
  const NOBODY = { customerId: null, productId: null, paymentId: null, subscriptionId: null }
  const about = { customer: 'cus_1', product: 'pro_1' }

  it('is the test customer, product and payment if nothing is said, of any payment event', () => {
    expect(PAYMENT).toMatch(/^pay_[0-9a-f]{12}$/)
    const ids = { customerId: 'cus_test', productId: 'pro_test', paymentId: PAYMENT, subscriptionId: null }
    for (const type of [
      ...['payment.succeeded', 'CHECKOUT_SUCCESS', 'PAYMENT_REFUNDED', 'PARTIAL_REFUNDED'],
      ...['checkout.canceled', 'payment.chargeback'],
    ]) {
      expect(chooseIds(type, {})).toEqual(ids)
    }
    for (const type of ['customer.created', 'payout.failed', 'payment_method.attached']) {
      expect(chooseIds(type, {})).toMatchObject({ paymentId: null, subscriptionId: null })
    }
    expect(chooseIds('payment.authorized', { ...about, customer: 'cus_2' }).paymentId).not.toBe(
      chooseIds('payment.authorized', about).paymentId,
    )
  })

  it('is for subscription events of both generations a subscription of the same customer, and its payment', () => {
    const ids = chooseIds('subscription.created', about)
    expect(ids.subscriptionId).toMatch(/^sub_[0-9a-f]{12}$/)
    expect(ids.paymentId).toBe(chooseIds('payment.authorized', about).paymentId)
    expect(chooseIds('SUBSCRIPTION_EXPIRED', about)).toEqual(ids)
  })

  it('leaves to the daemon what is not said where the payment or subscription is named', () => {
    expect(chooseIds('payment.refunded', { payment: 'pay_1' })).toEqual({ ...NOBODY, paymentId: 'pay_1' })
    const expired = chooseIds('subscription.expired', { subscription: 'sub_1' })
    expect(expired).toEqual({ ...NOBODY, subscriptionId: 'sub_1' })
    const paid = chooseIds('payment.authorized', { payment: 'pay_1', customer: 'cus_1' })
    expect(paid).toEqual({ ...NOBODY, paymentId: 'pay_1', customerId: 'cus_1' })
    // A named subscription has a payment of its own.
    const ofItsOwn = chooseIds('payment.authorized', { subscription: 'sub_1' })
    expect(ofItsOwn).toMatchObject({ subscriptionId: 'sub_1', paymentId: expect.stringMatching(/^pay_/) })
    expect(ofItsOwn.paymentId).not.toBe(PAYMENT)
  })

  it('is numbered in a series, and only there', () => {
    const ids = chooseIds('payment.authorized', { payment: 'pay_1' })
    expect(numbered(ids, 0, 1).paymentId).toBe('pay_1')
    expect([0, 1].map((index) => numbered(ids, index, 2).paymentId)).toEqual(['pay_1_1', 'pay_1_2'])
  })
})
