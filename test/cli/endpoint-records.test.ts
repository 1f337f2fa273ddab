import { describe, expect, it } from 'vitest'
import { buildSampleEvent } from '../../src/provider/sample-event.js'
import { endpoint } from '../config/config-file.js'
import { deliveryOf } from '../ingest/wire.js'
import { answerOf, rewriteConfig, run, takeIn } from '../world.js'
import { NOW, recordOf, registered, textIn, URL_HERE } from './registered.js'

const now = () => NOW

describe('latchkey endpoints update and disable', () => {
  it('change the record at the service, and leave the config as it is', async () => {
    const { service, folder, serviceId } = await registered()
    const before = textIn(folder)
    const { stdout } = await run(folder, 'endpoints disable sandbox')
    expect(stdout).toContain(`sandbox (${serviceId}): the payments service sends nothing more to it`)
    expect(await recordOf(service, serviceId)).toMatchObject({ isActive: false })
    const url = 'https://hooks.example.com/webhooks/sandbox'
    const words = `endpoints update sandbox --enable --url ${url} --events payment.failed --json`
    const updated = await run(folder, words)
    expect(JSON.parse(updated.stdout)).toMatchObject({ serviceId, service: { isActive: true, url } })
    expect(updated.stderr).toContain('note: sandbox is not sent payment.authorized')
    expect(await recordOf(service, serviceId)).toMatchObject({
      isActive: true,
      url,
      enabledEvents: ['payment.failed'],
    })
    await answerOf(folder, 'endpoints update sandbox --all-events')
    expect(await recordOf(service, serviceId)).toMatchObject({ url, enabledEvents: [] })
    expect(textIn(folder)).toBe(before)
  })
})

describe('latchkey endpoints list', () => {
  it('shows what the service has beside what the config has, and what of it is not compared', async () => {
    const { service, folder, serviceId } = await registered()
    const config = JSON.parse(textIn(folder))
    const legacy = endpoint('sandbox', 'whsec_legacy_0123456789')
    const gone = { ...endpoint('sandbox', 'whsec_gone_0123456789'), serviceId: 'whep_gone' }
    rewriteConfig(folder, { ...config, endpoints: { ...config.endpoints, legacy } })
    const { endpoints, findings } = await answerOf(folder, 'endpoints list')
    expect(endpoints).toEqual([
      {
        ...{ name: 'sandbox', environment: 'sandbox', serviceId, note: null },
        service: { url: URL_HERE, enabledEvents: [], isActive: true, apiVersion: expect.any(String) },
        ...{ lastEventAt: null, generation: null, apiVersion: null },
      },
      expect.objectContaining({
        ...{ name: 'legacy', serviceId: null, service: null },
        note: expect.stringMatching(/endpoints\.legacy\.serviceId.*v2.*dashboard/),
      }),
    ])
    expect(findings).toMatchObject([{ level: 'ok', what: 'service sandbox' }])
    expect((await answerOf(folder, 'endpoints list --environment live')).endpoints).toEqual([])

    rewriteConfig(folder, { ...config, endpoints: { ...config.endpoints, gone } })
    await service.data(`PATCH /v3/webhook-endpoints/${serviceId}`, { isActive: false })
    const { code, stdout, stderr } = await run(folder, 'endpoints list')
    expect(code).toBe(1)
    expect(stdout).toMatch(/^sandbox .* inactive .*nothing received\n/)
    expect(stdout).toMatch(/^FAIL +service sandbox +inactive/m)
    rewriteConfig(folder, { ...config, endpoints: { ...config.endpoints, legacy } })
    expect((await run(folder, 'endpoints list')).stdout).toMatch(/^note: legacy is not compared: /m)
    const { body } = buildSampleEvent({
      ...{ type: 'PAYMENT_SUCCESS', eventId: 'evt_1', createdAt: NOW, environment: 'sandbox', rail: 'card' },
      ...{ customerId: 'cus_1', productId: 'pro_1', paymentId: 'pay_1', subscriptionId: null },
    })
    await takeIn(
      folder,
      [deliveryOf(body, { endpoint: 'legacy', environment: 'sandbox', receivedAt: NOW })],
      now,
    )
    expect((await run(folder, 'endpoints list')).stdout).toMatch(
      /^legacy +sandbox +last 2026-03-01T12:00:00\.000Z\n(.*\n)*note: legacy is of v2: .*dashboard/m,
    )
    expect(stdout).toMatch(/^FAIL +service gone +the payments service does not know whep_gone: correct/m)
    expect(stderr).toMatch(/^error: .*404/)
  })
})
