import { describe, expect, it } from 'vitest'
import { BODY, expectRefused, lines, NOW_TEXT, post, RIGHT, signature } from './deliveries.js'
import { warnings } from './observed.js'
import { rawPost } from './raw-post.js'
import { ask, LIVE_SECRET, NOW, runDaemon, SANDBOX_SECRET, send } from './running-daemon.js'
import { storedEvents } from './stored.js'

describe('the secrets of an endpoint', () => {
  const NEXT_SECRET = 'whsec_next_9876543210'
  const notAfter = NOW + 60_000
  const endpoints = {
    live: {
      environment: 'live',
      secrets: [NEXT_SECRET, { secret: LIVE_SECRET, notAfter: new Date(notAfter).toISOString() }],
    },
  }

  it.each(['', ' ', '\t\n'])('can not be blank: %j refuses the start', async (blank) => {
    const config = { endpoints: { live: { environment: 'live', secrets: [LIVE_SECRET, blank] } } }
    await expect(runDaemon({ config })).rejects.toMatchObject({
      code: 'config_invalid',
      issues: [{ path: 'endpoints.live.secrets[1]' }],
    })
  })

  it('count each, wherever in the list', async () => {
    const daemon = await runDaemon({ config: { endpoints } })
    expect((await post(daemon, lines(NOW_TEXT, RIGHT))).status).toBe(200)
    const second = '{"id":"evt_2"}'
    expect((await send(daemon, second, { secret: NEXT_SECRET })).status).toBe(200)
    expect(await storedEvents(daemon)).toHaveLength(2)
  })

  it('count until their notAfter, and no longer', async () => {
    const daemon = await runDaemon({ config: { endpoints } })
    daemon.setNow(notAfter - 1)
    expect((await send(daemon, '{"id":"evt_2"}')).status).toBe(200)
    daemon.setNow(notAfter)
    expect((await send(daemon, '{"id":"evt_3"}')).status).toBe(401)
    expect((await send(daemon, '{"id":"evt_4"}', { secret: NEXT_SECRET })).status).toBe(200)
    expect(await storedEvents(daemon)).toMatchObject([{ event_id: 'evt_2' }, { event_id: 'evt_4' }])
  })

  it('are told apart in the log alone: rotated out, or never known', async () => {
    const daemon = await runDaemon({ config: { endpoints } })
    daemon.setNow(notAfter)
    const answer = await post(daemon, lines(NOW_TEXT, RIGHT))
    await expectRefused(daemon, answer, 'signature_invalid', { skewSeconds: -60 })
    expect(warnings(daemon)).toMatchObject([{ expiredSecret: true }])
    expect(answer.text).not.toMatch(/notAfter|rotated|expired|past/)
  })
})

describe('the two environments', () => {
  it.each([
    ['live', SANDBOX_SECRET],
    ['sandbox', LIVE_SECRET],
  ])("refuse each other's secrets: %s", async (endpoint, secret) => {
    const daemon = await runDaemon()
    const headers = lines(NOW_TEXT, signature(NOW_TEXT, BODY, secret))
    const answer = await rawPost(`${daemon.webhooksUrl}/webhooks/${endpoint}`, headers, BODY)
    const claimed = [signature(NOW_TEXT, BODY, secret).slice('v1='.length)]
    await expectRefused(daemon, answer, 'signature_invalid', { endpoint, skewSeconds: 0, claimed })
  })

  it('never share a secret', async () => {
    const sandbox = { environment: 'sandbox', secrets: [LIVE_SECRET] }
    const config = { endpoints: { live: { environment: 'live', secrets: [LIVE_SECRET] }, sandbox } }
    await expect(runDaemon({ config })).rejects.toMatchObject({
      code: 'config_invalid',
      issues: [{ path: 'endpoints.sandbox.secrets[0]' }],
    })
  })

  it('share no event, and no access', async () => {
    const daemon = await runDaemon()
    for (const endpoint of ['sandbox', 'live', 'sandbox']) await send(daemon, BODY, { endpoint })
    expect(await storedEvents(daemon)).toMatchObject([
      { environment: 'sandbox', event_id: 'evt_signed', deliveries: 2 },
      { environment: 'live', event_id: 'evt_signed', deliveries: 1 },
    ])
    const only = await runDaemon()
    await send(only, BODY, { endpoint: 'sandbox' })
    const asked = (environment: string) =>
      ask(only, `/entitlements/cus_told/pro_told?environment=${environment}`)
    expect(await (await asked('live')).json()).toMatchObject({ active: false, status: 'none' })
    expect(await (await asked('sandbox')).json()).toMatchObject({ active: true, status: 'active' })
  })
})
