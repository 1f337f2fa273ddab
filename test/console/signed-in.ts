/* A browser in front of a daemon with a seeded store, signed in to the console. */

import type { BrowserContextOptions, Page } from 'playwright-core'
import { expect } from 'vitest'
import { buildSampleEvent, type SampleSpec } from '../../src/provider/sample-event.js'
import { signBody } from '../../src/provider/signature.js'
import { openPage } from '../setup/browser.js'
import {
  API_KEY,
  type AskedDaemon,
  type AtEnd,
  CONFIG,
  configuredFolder,
  type DaemonHere,
  keyEntry,
  SECRET,
  serveHere,
} from '../world.js'

const SCOPES = ['read', 'write', 'events', 'metrics', 'admin'] as const
const BOTH = ['live', 'sandbox'] as const
export const SECRETS = { live: SECRET, sandbox: 'whsec_sandbox_0123456789' }

/** Keys with these rights beside the one that may do everything, by their text, which is their name too. */
export type Keys = Readonly<
  Record<string, { readonly scopes?: readonly string[]; readonly environments?: readonly string[] }>
>

/** A config with both endpoints, a product, a key that may do everything, and others. */
export function consoleConfig(keys: Keys = {}, further: object = {}) {
  const { live } = CONFIG.endpoints
  return {
    endpoints: { live, sandbox: { environment: 'sandbox', secrets: [SECRETS.sandbox] } },
    products: { pro_gold: { name: 'Gold', features: ['export'] }, pro_silver: { name: 'Silver' } },
    api: {
      keys: [
        { ...keyEntry('operator', API_KEY), scopes: SCOPES, environments: BOTH },
        ...Object.entries(keys).map(([name, { scopes = SCOPES, environments = BOTH }]) => ({
          ...keyEntry(name, name),
          scopes,
          environments,
        })),
      ],
    },
    ...further,
  }
}

export interface ServedConsole extends DaemonHere {
  readonly folder: string
  /** Delivers an event of a type, such as `payment.authorized`, as the payments service does. */
  readonly deliver: (type: string, subject?: Partial<SampleSpec>) => Promise<void>
}

/** A daemon in this process with this config. */
export async function serveConsole(
  config: object = consoleConfig(),
  now: () => number = Date.now,
): Promise<ServedConsole> {
  const folder = configuredFolder(config)
  const daemon = await serveHere(folder, { now })
  let sent = 0
  async function deliver(type: string, subject: Partial<SampleSpec> = {}): Promise<void> {
    sent += 1
    const { environment = 'live' } = subject
    const { body, event } = buildSampleEvent({
      type,
      eventId: `evt_${sent}`,
      createdAt: now(),
      environment,
      customerId: 'cus_1',
      productId: 'pro_gold',
      paymentId: `pay_${sent}`,
      subscriptionId: null,
      rail: 'card',
      ...subject,
    })
    const timestamp = String(Math.floor(now() / 1000))
    const answer = await fetch(`${daemon.url}/webhooks/${environment}`, {
      method: 'POST',
      headers: {
        'X-Webhook-Event': event,
        'X-Webhook-Timestamp': timestamp,
        'X-Webhook-Signature': signBody(SECRETS[environment], timestamp, Buffer.from(body)),
      },
      body,
    })
    expect(answer.status).toBe(200)
  }
  return { ...daemon, folder, deliver }
}

/** Signs in by the form's own request. */
export async function signIn({ url }: Pick<AskedDaemon, 'url'>, key = API_KEY): Promise<string> {
  const answer = await fetch(`${url}/console/session`, {
    method: 'POST',
    redirect: 'manual',
    headers: { Origin: url },
    body: new URLSearchParams({ key }),
  })
  expect(answer.status).toBe(303)
  return answer.headers.get('set-cookie')?.split(';')[0] ?? ''
}

export interface ConsolePage {
  readonly page: Page
  /** Errors of the console, requests elsewhere and answers 500 so far; each test ends by expecting none. */
  readonly faults: () => readonly string[]
}

export interface Opening extends BrowserContextOptions {
  /** Null: nobody is signed in. */
  readonly key?: string | null
  /** When the window closes, if not with the test. */
  readonly atEnd?: AtEnd
}

/** One browser for all tests. */
export function useConsole() {
  /** Opens a view, such as `/customers/cus_1`, in a new window. */
  async function open(
    { url }: Pick<AskedDaemon, 'url'>,
    path = '/',
    { key = API_KEY, atEnd, ...options }: Opening = {},
  ): Promise<ConsolePage> {
    // By the language of this machine, it may have one that nobody has.
    const inBerlin = { locale: 'en-GB', timezoneId: 'Europe/Berlin', ...options }
    const page = await openPage('about:blank', inBerlin, atEnd)
    const faults: string[] = []
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') faults.push(message.text())
    })
    page.on('pageerror', (error) => faults.push(String(error)))
    page.on('request', (request) => {
      const target = request.url()
      if (!target.startsWith(`${url}/console`) && !/^(data|blob|about):/.test(target)) faults.push(target)
    })
    page.on('response', (response) => {
      if (response.status() >= 500) faults.push(`${response.status()} ${response.url()}`)
    })
    if (key !== null) {
      const [name = '', value = ''] = (await signIn({ url }, key)).split('=')
      await page
        .context()
        .addCookies([
          { name, value, domain: '127.0.0.1', path: '/console', httpOnly: true, sameSite: 'Strict' },
        ])
    }
    await page.goto(`${url}/console${path}`)
    return { page, faults: () => faults }
  }
  return { open }
}
