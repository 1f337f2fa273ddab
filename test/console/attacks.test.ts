/* What somebody tries who should not get in, in a real browser. */

import { createServer } from 'node:http'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import { startDiscord } from '../platforms/discord-server.js'
import { eventually } from '../setup/eventually.js'
import { portOf } from '../setup/port-of.js'
import { sentEvent } from '../stories.js'
import { SECRET, startAnswering } from '../sync/webhook/receiver.js'
import { API_KEY, act, entitlementsOf } from '../world.js'
import { daysAgo, receive, refundedStory } from './seeded.js'
import { consoleConfig, type Keys, type ServedConsole, serveConsole, useConsole } from './signed-in.js'

const browser = useConsole()

/** Serves one page, and answers with its port. */
async function servePage(html: string): Promise<number> {
  const server = createServer((_req, res) => void res.setHeader('Content-Type', 'text/html').end(html))
  return portOf(server)
}

/** To a browser, another name is another site, and another port is the same site. */
const PLACES = ['localhost', '127.0.0.1']

describe('a page elsewhere', () => {
  it.each(PLACES)('on %s posts forms that change nothing, and sign nobody in or out', async (host) => {
    const daemon = await serveConsole()
    const { page } = await browser.open(daemon)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    const cookies = await page.context().cookies()
    const forms = [
      [
        '/console/api/customers/cus_1/grants',
        'text/plain',
        '{"productId":"pro_gold","until":null,"reason":"',
        '"}',
      ],
      ['/console/api/stop', 'text/plain', '{"a":"', '"}'],
      ['/console/session', 'application/x-www-form-urlencoded', 'key', API_KEY],
    ] as const
    for (const [path, type, name, value] of forms) {
      const port = await servePage(
        `<form method=post enctype=${type} action="${daemon.url}${path}"><input name='${name}' value='${value}'><button>Win</button></form>`,
      )
      await page.goto(`http://${host}:${port}/`)
      const answered = page.waitForResponse((response) => response.url() === `${daemon.url}${path}`)
      await page.getByRole('button').click()
      // Without the cookie, which goes to no other site, it does not even come to the question of its origin.
      expect([401, 403]).toContain((await answered).status())
    }
    expect(await entitlementsOf(daemon, 'cus_1')).toEqual([])
    expect(await page.context().cookies()).toEqual(cookies)
  })

  it.each(PLACES)('on %s sends what scripts can send, which changes and tells nothing', async (host) => {
    const daemon = await serveConsole()
    const { page } = await browser.open(daemon)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.goto(`http://${host}:${await servePage('<p>Look here</p>')}/`)
    const sent = await page.evaluate(async (url) => {
      const ask = (path: string, options: RequestInit): Promise<string> =>
        fetch(`${url}${path}`, { credentials: 'include', ...options }).then(
          async (answer) => `${answer.type} ${await answer.text()}`,
          () => 'refused by the browser',
        )
      const body = '{"reason":"forged"}'
      return Promise.all([
        ask('/console/api/keys', {}),
        ask('/console/api/keys', { mode: 'no-cors' }),
        ask('/console/api/customers/cus_1/blocks', { method: 'PUT', body }),
        ask('/console/api/stop', { method: 'POST', mode: 'no-cors', body }),
        ask('/console/session', { method: 'DELETE' }),
      ])
    }, daemon.url)
    const [read, blind, put, stop, leave] = sent
    expect([read, put, leave]).toEqual([
      'refused by the browser',
      'refused by the browser',
      'refused by the browser',
    ])
    for (const one of [blind, stop]) expect(['opaque ', 'refused by the browser']).toContain(one)
    expect((await act(daemon, 'GET', '/status')).ready).toBe(true)
    await page.goto(`${daemon.url}/console/`)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
  })

  it.each(PLACES)('on %s has the console in no frame, where a click could be stolen', async (host) => {
    const daemon = await serveConsole()
    const { page } = await browser.open(daemon)
    const port = await servePage(`<iframe src="${daemon.url}/console/customers/cus_1"></iframe>`)
    await page.goto(`http://${host}:${port}/`, { waitUntil: 'load' })
    const [, framed] = page.frames()
    await eventually(() => expect(framed?.url()).toMatch(/^chrome-error:/))
    expect(await page.frameLocator('iframe').getByRole('button').count()).toBe(0)
  })
})

const EVIL = `<img src=x onerror="window.hasRun=1"><script>window.hasRun=1</script>"'>\u202egnp`
/** As pages show it: a mark that turns the direction of what follows is spelled out. */
const SHOWN = EVIL.replace('\u202e', '\\u202e')
/** Every view that shows what others have written. */
const viewsOf = (customerId: string, eventId: string): readonly string[] => [
  '/',
  `/customers?query=${encodeURIComponent(customerId.slice(0, 8))}`,
  `/customers/${encodeURIComponent(customerId)}`,
  '/events',
  `/events/${encodeURIComponent(eventId)}`,
  '/products',
  '/products/pro_gold',
  `/changes?from=${new Date(daysAgo(1)).toISOString().slice(0, 10)}&to=${new Date().toISOString().slice(0, 10)}`,
  '/sync',
  '/sync/memberships',
  '/sync/messages',
  '/policy',
]

/** Waits until a view shows all that it asked for. */
async function settle(page: Page): Promise<void> {
  await page.getByRole('main').waitFor()
  const isBusy = `document.querySelector('[aria-busy="true"]') !== null || /Loading…/.test(document.body.innerText)`
  await eventually(async () => expect(await page.evaluate(isBusy)).toBe(false))
}

it('a script in names, references, products and reasons is text on every page', async () => {
  const discord = await startDiscord()
  const own = await startAnswering(410)
  const role = { adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }
  discord.guild.setRole({ id: GOLD_ROLE_ID, name: EVIL, position: 20 })
  const daemon = await serveConsole(
    consoleConfig(
      {},
      {
        products: { pro_gold: { name: EVIL, features: ['export'], targets: [role] } },
        sync: {
          discord: { botToken: BOT_TOKEN, apiUrl: discord.url },
          webhooks: { crm: { url: own.url, secret: SECRET } },
        },
      },
    ),
  )
  const [customerId, eventId] = [`cus_evil${EVIL}`, `evt_evil${EVIL}`]
  const data = {
    ...{ object: 'payment', id: `pay_${EVIL}`, method: 'CARD', external_ref: EVIL, metadata: { note: EVIL } },
    customer: { object: 'customer', id: customerId, name: EVIL, email: `${EVIL}@private.example` },
    product: { object: 'product', id: 'pro_gold' },
  }
  await receive(daemon, [sentEvent(eventId, 'payment.authorized', daysAgo(3), data)])
  const path = `/customers/${encodeURIComponent(customerId)}`
  discord.guild.join(accountId(1))
  await act(daemon, 'PUT', `${path}/identities`, { communityId: accountId(1) })
  await act(daemon, 'PUT', `${path}/blocks`, { reason: EVIL })
  const { page, faults } = await browser.open(daemon)
  for (const view of viewsOf(customerId, eventId)) {
    await page.goto(`${daemon.url}/console${view}`)
    await settle(page)
    expect([
      view,
      await page.evaluate('window.hasRun'),
      await page.locator('img, script:not([src])').count(),
    ]).toEqual([view, undefined, 0])
    if (view.startsWith('/customers')) expect(await page.locator('body').innerText()).toContain(SHOWN)
  }
  expect(faults()).toEqual([])
})

/** A daemon with something live in every list. */
async function serveLive(keys: Keys): Promise<ServedConsole> {
  const discord = await startDiscord()
  const own = await startAnswering(204)
  discord.guild.join(accountId(1))
  const role = { adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }
  const daemon = await serveConsole(
    consoleConfig(keys, {
      products: { pro_gold: { name: 'Gold', features: ['export'], targets: [role] } },
      sync: {
        discord: { botToken: BOT_TOKEN, apiUrl: discord.url },
        webhooks: { crm: { url: own.url, secret: SECRET } },
      },
    }),
  )
  await receive(daemon, refundedStory('cus_secret'))
  await act(daemon, 'PUT', '/customers/cus_secret/identities', { communityId: accountId(1) })
  await act(daemon, 'POST', '/customers/cus_secret/grants', {
    productId: 'pro_gold',
    reason: 'a case',
  })
  await eventually(() => expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([accountId(1)]))
  return daemon
}

const EVENT = 'evt_cus_secret_refunded'

/** Goes to every view, and answers with what each lets one do and with all that the API has told. */
async function walk(daemon: ServedConsole, key: string, query = '') {
  const { page, faults } = await browser.open(daemon, '/sign-in', { key })
  const told: Promise<string>[] = []
  page.on('response', (answer) => {
    // A stream does not end by itself; what the page no longer wants once it has come, it does not show.
    const isData = answer.ok() && answer.url().includes('/console/api/') && !answer.url().includes('/stream')
    if (isData) told.push(answer.text().catch(() => ''))
  })
  const [acts, texts]: [string[], string[]] = [[], []]
  const denied: string[] = []
  for (const view of viewsOf('cus_secret', EVENT)) {
    const address = new URL(`${daemon.url}/console${view}`)
    for (const [name, value] of new URLSearchParams(query)) address.searchParams.set(name, value)
    await page.goto(address.href)
    await settle(page)
    // The first page is one that the key may see, if there is any.
    if (view !== '/' && (await page.getByText('This page needs a key with the scope').count()) > 0)
      denied.push(view.split('?')[0] ?? '')
    acts.push(...(await page.locator('button').filter({ hasText: /…$/ }).allInnerTexts()))
    texts.push(...(await Promise.all(told.splice(0))))
  }
  return { acts: [...new Set(acts)].sort(), denied, text: texts.join('\n'), faults: faults() }
}

describe('a key', () => {
  const CUSTOMERS = ['/customers', '/customers/cus_secret', '/products', '/products/pro_gold', '/changes']
  const EVENTS = ['/events', `/events/${EVENT}`]
  const SYNC = ['/sync', '/sync/memberships', '/sync/messages', '/policy']
  const BY_HAND = ['Block…', 'Grant…', 'Link accounts…', 'Revoke…']
  const OPERATING = [
    'Apply…',
    'Pause…',
    'Rebuild…',
    'Replay a stretch of time…',
    'Replay…',
    'Run now…',
    'Test…',
  ]
  it.each([
    [['read'], [...EVENTS, ...SYNC], [], ['"normalized"', '"attempts"', '"configured":{']],
    [['read', 'write'], [...EVENTS, ...SYNC], BY_HAND, ['"normalized"', '"attempts"']],
    [['events'], [...CUSTOMERS, ...SYNC], ['Export these…'], ['"entitlements"', '"memberships"']],
    [['admin'], [...CUSTOMERS, ...EVENTS], OPERATING, ['"normalized"', 'private.example']],
    [['metrics'], [...CUSTOMERS, ...EVENTS, ...SYNC], [], ['cus_secret', 'private.example']],
  ])(
    'with the scopes %j sees no other act, and is told nothing else',
    async (scopes, denied, acts, untold) => {
      const daemon = await serveLive({ lk_some: { scopes } })
      const seen = await walk(daemon, 'lk_some')
      expect(seen.denied.sort()).toEqual([...denied].sort())
      expect(seen.acts).toEqual([...acts].sort())
      expect(untold.filter((word) => seen.text.includes(word))).toEqual([])
      expect(seen.faults).toEqual([])
    },
  )

  it('for the sandbox is told nothing live, whether it asks for that or not', async () => {
    const daemon = await serveLive({ lk_sandbox: { environments: ['sandbox'] } })
    // The customer's id is in the address that is gone to, and so in what is said about it.
    const live = ['private.example', 'evt_cus', 'crm-cus', 'pay_cus', 'sub_cus', accountId(1), '"live"']
    for (const query of ['', 'environment=live']) {
      const { text } = await walk(daemon, 'lk_sandbox', query)
      expect([query, live.filter((word) => text.includes(word))]).toEqual([query, []])
    }
    const { text: all } = await walk(daemon, API_KEY)
    expect(live.filter((word) => !all.includes(word))).toEqual([])
  })
})
