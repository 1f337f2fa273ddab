import { describe, expect, it } from 'vitest'
import type { Endpoint } from '../../src/provider/endpoint.js'
import { SAMPLE_TYPES } from '../../src/provider/sample-event.js'
import { verifySignature } from '../../src/provider/signature.js'
import { endpoint, writeConfig } from '../config/config-file.js'
import { type ReceivedDelivery, startReceiver, unusedPort } from './receiver.js'
import { cli, NOW } from './run-cli.js'

const ROTATED = [{ secret: 'whsec_old', notAfter: '2026-01-01T00:00:00Z' }, 'whsec_new']
const sandbox = endpoint('sandbox', ...ROTATED)
const live = endpoint('live', 'whsec_live')

function bodyOf({ body }: ReceivedDelivery): {
  id: string
  type: string
  createdAt: string
  livemode: boolean
} {
  return JSON.parse(body.toString('utf8'))
}

function applied(delivery: ReceivedDelivery) {
  return { received: true, id: bodyOf(delivery).id, disposition: 'applied' }
}

function isSignedBy(secret: string, { body, headers }: ReceivedDelivery): boolean {
  const asked: Pick<Endpoint, 'secrets' | 'toleranceSeconds'> = {
    secrets: [{ secret, notAfter: null }],
    toleranceSeconds: 0,
  }
  return verifySignature({ body, headers, endpoint: asked, now: NOW }).ok
}

/** A daemon that stores every delivery, and its config. */
async function running(endpoints: Readonly<Record<string, unknown>> = { live, sandbox }) {
  const receiver = await startReceiver(applied)
  const config = writeConfig({ endpoints, server: { port: receiver.port } })
  return { ...receiver, trigger: (...args: string[]) => cli(['trigger', ...args, '--config', config]) }
}

describe('latchkey trigger', () => {
  it('delivers a signed sample to the sandbox endpoint and shows what became of it', async () => {
    const { deliveries, trigger } = await running()
    const { exitCode, out, err } = await trigger(
      'payment.authorized',
      '--customer',
      'cus_1',
      '--product',
      'pro_1',
    )

    expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' })
    expect(out).toMatch(/^payment\.authorized {2}evt_[0-9a-f]{24} {2}pay_[0-9a-f]{12} {2}applied\n$/)
    expect(deliveries).toHaveLength(1)
    const [delivery] = deliveries as [ReceivedDelivery]
    expect(delivery.path).toBe('/webhooks/sandbox')
    expect(delivery.headers['x-webhook-event']).toEqual(['payment.authorized'])
    expect(bodyOf(delivery)).toMatchObject({
      type: 'payment.authorized',
      livemode: false,
      createdAt: new Date(NOW).toISOString(),
    })
  })

  it('signs with the first secret that still counts', async () => {
    const { deliveries, trigger } = await running()
    await trigger('payment.authorized')
    expect(deliveries.map((delivery) => isSignedBy('whsec_new', delivery))).toEqual([true])
    expect(deliveries.map((delivery) => isSignedBy('whsec_old', delivery))).toEqual([false])
  })

  it('is about the same payment when customer and product are the same', async () => {
    const { trigger } = await running()
    const about = ['--customer', 'cus_1', '--product', 'pro_1', '--json']
    const lines = [
      await trigger('payment.authorized', ...about),
      await trigger('payment.refunded', ...about),
      await trigger('payment.refunded', '--customer', 'cus_2', '--product', 'pro_1', '--json'),
    ].map(({ out }) => JSON.parse(out) as { paymentId: string })
    expect(lines[1]?.paymentId).toBe(lines[0]?.paymentId)
    expect(lines[2]?.paymentId).not.toBe(lines[0]?.paymentId)
  })

  it('sends several, each about a payment of its own, one line each', async () => {
    const { deliveries, trigger } = await running()
    const { out } = await trigger('payment.authorized', '--payment', 'pay_x', '--count', '3', '--json')
    const lines = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: string; paymentId: string })
    expect(lines.map(({ paymentId }) => paymentId)).toEqual(['pay_x_1', 'pay_x_2', 'pay_x_3'])
    expect(lines.map(({ id }) => id)).toEqual(deliveries.map((delivery) => bodyOf(delivery).id))
    expect(new Set(lines.map(({ id }) => id)).size).toBe(3)
  })

  it('tells when the event happened apart from when it is sent', async () => {
    const { deliveries, trigger } = await running()
    await trigger('payment.authorized', '--at', '2026-01-02T03:04:05Z')
    const [delivery] = deliveries as [ReceivedDelivery]
    expect(bodyOf(delivery).createdAt).toBe('2026-01-02T03:04:05.000Z')
    expect(isSignedBy('whsec_new', delivery)).toBe(true)
  })

  it('speaks the legacy generation if asked to', async () => {
    const { deliveries, trigger } = await running()
    const { out } = await trigger('payment.refunded', '--generation', 'v2')
    expect(out).toMatch(/^PAYMENT_REFUNDED {2}evt_/)
    expect(deliveries.map((delivery) => bodyOf(delivery).type)).toEqual(['PAYMENT_REFUNDED'])
  })

  it('goes to a live endpoint with --live alone', async () => {
    const { deliveries, trigger } = await running()
    expect((await trigger('payment.authorized', '--live')).exitCode).toBe(0)
    expect((await trigger('payment.authorized', '--live', '--endpoint', 'live')).exitCode).toBe(0)
    expect(deliveries.map(({ path }) => path)).toEqual(['/webhooks/live', '/webhooks/live'])
    expect(deliveries.map((delivery) => bodyOf(delivery).livemode)).toEqual([true, true])
  })

  it('lists every type of both generations in its help, in lines that fit a terminal', async () => {
    const { out } = await cli(['trigger', '--help'])
    for (const type of [...SAMPLE_TYPES.v3, ...SAMPLE_TYPES.v2]) {
      expect(out).toMatch(new RegExp(`[ ]${type.replaceAll('.', '\\.')}(,|\\n)`))
    }
    expect(out.split('\n').filter((line) => line.length > 80)).toEqual([])
  })

  it.each([
    ['payment.authorised', [], 'there is no event type "payment.authorised": '],
    ['PAYMENT_SUCESS', ['--generation', 'v2'], 'there is no v2 event type "PAYMENT_SUCESS": '],
  ])('says where the types are for %s, with %j', async (type, args, message) => {
    const { trigger } = await running()
    const { exitCode, err } = await trigger(type, ...args)
    expect(exitCode).toBe(2)
    expect(err).toContain(message)
    expect(err).toMatch(/`latchkey trigger --help` lists them all\n$/)
  })

  it.each([
    ['held', 'held: it waits for its customer, its product or a proof of its rail; name them with'],
    ['quarantined', "quarantined: kept, and not usable; the daemon's log says why"],
  ])(
    'hints once, for people, at what a delivery that is %s waits for or lacks',
    async (disposition, hint) => {
      const { port } = await startReceiver((delivery) => ({ ...applied(delivery), disposition }))
      const config = writeConfig({ endpoints: { sandbox }, server: { port } })
      const args = ['trigger', 'payment.authorized', '--count', '2', '--config', config]
      const { exitCode, err } = await cli(args)
      expect(exitCode).toBe(0)
      expect(err.split('\n')).toEqual([expect.stringContaining(hint), ''])
      expect(await cli([...args, '--json'])).toMatchObject({ exitCode: 0, err: '' })
    },
  )

  it.each([
    ['a live endpoint without --live', ['--endpoint', 'live'], 'say --live too'],
    ['a sandbox endpoint with --live', ['--endpoint', 'sandbox', '--live'], 'leave out --live'],
    ['an endpoint that is not there', ['--endpoint', 'v9'], 'configured: live, sandbox'],
    ['an unknown type', ['--generation', 'v2'], 'payment.exploded', 'payment.exploded'],
  ])('sends nothing and exits 2 for %s', async (_, args, message, type = 'payment.authorized') => {
    const { deliveries, trigger } = await running()
    const { exitCode, out, err } = await trigger(type, ...args)
    expect({ exitCode, out, sent: deliveries.length }).toEqual({ exitCode: 2, out: '', sent: 0 })
    expect(err).toContain(message)
  })

  it('says what to do where no sandbox endpoint is configured', async () => {
    const { trigger } = await running({ live })
    expect(await trigger('payment.authorized')).toMatchObject({
      exitCode: 2,
      err: 'error: no sandbox endpoint is configured: add one to the config, or say --live to change live access\n',
    })
  })

  it('exits 2 where every secret has been rotated out', async () => {
    const { trigger } = await running({ sandbox: endpoint('sandbox', ROTATED[0]) })
    expect(await trigger('payment.authorized')).toMatchObject({
      exitCode: 2,
      err: 'error: every secret of the endpoint sandbox has passed its notAfter\n',
    })
  })

  it('goes to the listener for webhooks where there is one, and reaches a wildcard at loopback', async () => {
    const { port, deliveries } = await startReceiver(applied, { host: '0.0.0.0' })
    const server = { port: 1, webhooks: { host: '0.0.0.0', port } }
    const config = writeConfig({ endpoints: { sandbox }, server })
    expect((await cli(['trigger', 'payment.authorized', '--config', config])).exitCode).toBe(0)
    expect(deliveries).toHaveLength(1)
  })

  it('needs --url where the system chose the port', async () => {
    const { url, deliveries } = await startReceiver(applied)
    const config = writeConfig({ endpoints: { sandbox }, server: { port: 0 } })
    const args = ['trigger', 'payment.authorized', '--config', config]
    expect((await cli(args)).exitCode).toBe(2)
    expect((await cli([...args, '--url', `${url}/`])).exitCode).toBe(0)
    expect(deliveries.map(({ path }) => path)).toEqual(['/webhooks/sandbox'])
  })

  it('exits 1 with what the daemon said when it refuses', async () => {
    const problem = { code: 'signature_invalid', detail: 'No secret signed this.' }
    const { port, url } = await startReceiver(() => problem, { status: 401 })
    const config = writeConfig({ endpoints: { sandbox }, server: { port } })
    expect(await cli(['trigger', 'payment.authorized', '--config', config])).toEqual({
      exitCode: 1,
      out: '',
      err: `error: ${url} answered 401 signature_invalid: No secret signed this.\n`,
    })
  })

  it('exits 1 when what answers is no daemon', async () => {
    const { port } = await startReceiver(() => 'hello')
    const config = writeConfig({ endpoints: { sandbox }, server: { port } })
    const { exitCode, err } = await cli(['trigger', 'payment.authorized', '--config', config])
    expect(exitCode).toBe(1)
    expect(err).toContain('answered 200: is this address a Latchkey daemon?')
  })

  it('exits 1 when no daemon runs', async () => {
    const port = await unusedPort()
    const config = writeConfig({ endpoints: { sandbox }, server: { port } })
    expect(await cli(['trigger', 'payment.authorized', '--config', config, '--json'])).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining('"code":"daemon_unreachable"'),
    })
  })
})
