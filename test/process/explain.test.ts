import { expect, it } from 'vitest'
import { latchkey, runProgram } from '../setup/program.js'
import { ask, CONFIG, configuredFolder, serve } from './served.js'

const ABOUT = ['--customer', 'cus_1', '--product', 'pro_1', '--payment', 'pay_1']

it('explains beside the running daemon what the daemon explains, and without it', async () => {
  const folder = configuredFolder(CONFIG)
  const daemon = await serve(folder)

  async function output(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await runProgram(latchkey(...args), { folder })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return stdout
  }
  for (const type of ['payment.authorized', 'payment.refunded']) {
    await output('trigger', type, ...ABOUT, '--live', '--url', daemon.url)
  }

  const { asOf: _asked, ...served } = (await (
    await ask(daemon, '/entitlements/cus_1/pro_1/explanation')
  ).json()) as Record<string, unknown>
  expect(served).toMatchObject({
    entitlement: { active: false, status: 'refunded' },
    sources: [{ id: 'pay_1', events: [{ note: { code: 'paid' } }, { note: { code: 'taken_back' } }] }],
  })
  const { asOf: _read, ...read } = JSON.parse(await output('explain', 'cus_1', 'pro_1', '--json'))
  expect(read).toEqual(served)

  daemon.signal('SIGTERM')
  expect((await daemon.exit).code).toBe(0)
  const text = await output('explain', 'cus_1', 'pro_1')
  expect(text).toMatch(
    /^cus_1 has no access to pro_1 since \S+: the payment was refunded \(evt_\w+ of payment pay_1\)\.\n/,
  )
  expect(text).toContain('Refund of pay_1: pay_1 counts no more. Access to pro_1 ends.')
})
