import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { freePort } from './setup/free-port.js'
import { customerStory, deliver, sentEvent } from './stories.js'
import {
  API_KEY,
  act,
  CONFIG,
  configuredFolder,
  MAY_ALL,
  ROOT,
  type RunningProgram,
  runProgram,
  serveHere,
  startProgram,
} from './world.js'

const EXAMPLES = join(ROOT, 'examples')
const SELLS_REPORTS = { ...CONFIG, server: { port: 0 }, products: { pro_1: { features: ['reports'] } } }
const { customerId, events } = customerStory(2)
const [paid = sentEvent('', '', 0, {})] = events

/** Starts an example in the folder, with what its package.json names installed. */
async function startExample(
  name: string,
  folder: string,
  env: Readonly<Record<string, string>>,
  isUp: RegExp,
): Promise<RunningProgram & { readonly url: string }> {
  cpSync(join(EXAMPLES, name), folder, { recursive: true })
  const { dependencies, scripts } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  mkdirSync(join(folder, 'node_modules'))
  for (const one of Object.keys(dependencies)) {
    const installed = one === 'latchkey' ? ROOT : join(ROOT, 'node_modules', one)
    symlinkSync(installed, join(folder, 'node_modules', one))
  }
  const port = String(await freePort())
  const [, ...words] = scripts.start.split(' ')
  const program = startProgram([process.execPath, ...words], { folder, env: { ...env, PORT: port } })
  await program.until(isUp)
  return { ...program, url: `http://127.0.0.1:${port}` }
}

it('the Express shop takes a payment in, and opens what it has closed with a 402', async () => {
  const env = { LATCHKEY_API_KEY: API_KEY }
  const shop = await startExample('express-shop', configuredFolder(SELLS_REPORTS), env, /the shop is open/)
  const visit = async () => {
    const page = await fetch(`${shop.url}/reports?customer=${customerId}`, {
      headers: { Connection: 'close' },
    })
    return `${page.status} ${await page.text()}`
  }
  expect(await visit()).toMatch(/^402 .*\/buy\.\n$/)
  expect(await deliver(shop.url, [paid])).toMatchObject({ dispositions: ['applied'] })
  expect(await visit()).toBe('200 The report of the month.\n')
  shop.signal('SIGTERM')
  expect(await shop.exit).toMatchObject({ code: 0, stderr: '' })
})

it('the receiver of the outbound webhook takes each message in once, and only signed ones', async () => {
  const secret = `whsec_${Buffer.from('thirty-two bytes for the example').toString('base64')}`
  const folder = configuredFolder()
  const env = { LATCHKEY_WEBHOOK_SECRET: secret }
  const receiver = await startExample('webhook-receiver', folder, env, /listening/)
  const sync = { webhook: { url: receiver.url.replace('127.0.0.1', 'localhost'), secret } }
  const daemon = await serveHere(configuredFolder({ ...SELLS_REPORTS, ...MAY_ALL, sync }))
  await deliver(daemon.url, [paid])
  await receiver.until(new RegExp(`^${customerId} pro_1 true$`, 'm'))

  const data = { environment: 'live', customerId, productId: 'pro_1', after: { active: false } }
  const ended = JSON.stringify({ type: 'entitlement.revoked', data })
  const send = async (id: string, signer = new Webhook(secret)) => {
    const at = new Date()
    const headers = {
      Connection: 'close',
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': signer.sign(id, at, ended),
    }
    return (await fetch(receiver.url, { method: 'POST', headers, body: ended })).status
  }
  expect(await send('msg_2', new Webhook(Buffer.from('of somebody else').toString('base64')))).toBe(401)
  expect([await send('msg_1'), await send('msg_1')]).toEqual([204, 204])
  const tested = await act(daemon, 'POST', '/sync/webhooks/default/test')
  expect(tested).toMatchObject({ status: 204 })
  expect(receiver.stdout().match(/^cus_.*$/gm)).toEqual([
    `${customerId} pro_1 true`,
    `${customerId} pro_1 false`,
  ])
})

describe('a gate in another language asks, and denies where there is no answer', () => {
  const isThere = (program: string) => spawnSync(program, ['--version']).status === 0
  it.for([
    ['python3', 'python-gate/gate.py'],
    ['php', 'php-gate/gate.php'],
  ] as const)('%s', async ([program, file], { skip }) => {
    skip(!isThere(program), `${program} is not installed`)
    const daemon = await serveHere(configuredFolder(SELLS_REPORTS))
    await deliver(daemon.url, [paid])
    const ask = (customer: string, env = {}) =>
      runProgram([program, join(EXAMPLES, file), customer, 'reports'], {
        folder: ROOT,
        env: { LATCHKEY_URL: daemon.url, LATCHKEY_API_KEY: API_KEY, ...env },
      })
    expect(await ask(customerId)).toMatchObject({ stdout: 'yes\n' })
    expect(await ask('cus_nobody')).toMatchObject({ stdout: 'no\n' })
    for (const env of [
      { LATCHKEY_API_KEY: 'lk_wrong' },
      { LATCHKEY_URL: `http://127.0.0.1:${await freePort()}` },
    ])
      expect((await ask(customerId, env)).stdout).toContain('no\n')
  })
})
