import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import { launchChromium } from '../test/setup/chromium.js'
import { median, percentile } from './load/percentile.js'
import { readOptions } from './options.js'
import { memoryUse } from './process-usage.js'
import { machineNow, report, type Section } from './results.js'
import { storedCustomer } from './sample/customers.js'
import { type RunningDaemon, startLatchkey } from './servers/latchkey.js'
import { API_KEY } from './store/daemon-folder.js'
import { type GeneratedStore, generateStore } from './store/generate.js'
import { figure, markdownTable, ratio } from './table.js'
import { together } from './together.js'
import { createWorkFolder } from './work-folder.js'

/*
 * How long one waits in the operator's console with many customers, beside few; and what the console costs a daemon
 * that nobody looks at. The browser shares the machine with the daemon. On Linux.
 *
 *   node --import ./scripts/typescript.js bench/console.ts [--customers 100000] [--rounds 5] [--searches 200] [--folder F]
 */

const FEW_CUSTOMERS = 1_000
/** What a daemon does after its start is over by then. */
const IDLE_MS = 5_000

const machine = machineNow()
const { folder, numbers } = readOptions({ customers: 100_000, rounds: 5, searches: 200 })

/** In a page: when all was there that it asked for, and when what was typed last was found. */
const NOTE_TIMES = `
  const isWhole = () =>
    document.querySelector('h1') !== null && document.querySelector('[aria-busy="true"]') === null &&
    !document.body.innerText.includes('Loading…')
  const note = (name, isThere) => {
    const look = () => { if (isThere()) window[name] ??= performance.now(); else requestAnimationFrame(look) }
    requestAnimationFrame(look)
  }
  note('wholeAt', isWhole)
  addEventListener('input', () => {
    const typedAt = performance.now()
    note('foundAfter', () => {
      if (document.querySelector('#main table a') === null || !isWhole()) return false
      window.foundAfter = performance.now() - typedAt
      return true
    })
  }, true)
`

/** In milliseconds from the request for the page on, in a browser that has never been there. */
interface PageTimes {
  readonly firstPaint: number
  readonly whole: number
}

type Numbers = readonly number[]
const middle = (values: Numbers): number => Math.round(median(values))

async function openSignedIn(browser: Browser, { port }: RunningDaemon): Promise<Page> {
  const url = `http://127.0.0.1:${port}`
  const answer = await fetch(`${url}/console/session`, {
    method: 'POST',
    redirect: 'manual',
    headers: { Origin: url },
    body: new URLSearchParams({ key: API_KEY }),
  })
  const [name = '', value = ''] = (answer.headers.get('set-cookie') ?? '').split(';')[0]?.split('=') ?? []
  if (answer.status !== 303) throw new Error(`The sign-in was answered ${answer.status}.`)
  const context = await browser.newContext()
  await context.addCookies([{ name, value, domain: '127.0.0.1', path: '/console' }])
  const page = await context.newPage()
  await page.addInitScript(NOTE_TIMES)
  return page
}

/** Resolves once the page has noted a time. */
async function isNoted(page: Page, name: string): Promise<void> {
  while (!(await page.evaluate(`window.${name} !== undefined`))) await wait(20)
}

async function timePage(browser: Browser, daemon: RunningDaemon, path: string): Promise<PageTimes> {
  const page = await openSignedIn(browser, daemon)
  await page.goto(`http://127.0.0.1:${daemon.port}/console${path}`)
  await isNoted(page, 'wholeAt')
  const times = await page.evaluate<PageTimes>(
    `({ firstPaint: performance.getEntriesByName('first-contentful-paint')[0].startTime, whole: window.wholeAt })`,
  )
  await page.context().close()
  return times
}

/** From the last letter of an id on, until its customer is shown. */
async function timeSearch(browser: Browser, daemon: RunningDaemon, id: string): Promise<number> {
  const page = await openSignedIn(browser, daemon)
  await page.goto(`http://127.0.0.1:${daemon.port}/console/customers`)
  await page.getByRole('searchbox').fill(id)
  await isNoted(page, 'foundAfter')
  const found = await page.evaluate<number>('window.foundAfter')
  await page.context().close()
  return found
}

/** Of the API's answers to the beginnings of ids, one after the other, in milliseconds, sorted. */
async function timeAnswers({ port }: RunningDaemon, { customers }: GeneratedStore): Promise<Numbers> {
  const times: number[] = []
  for (let n = 0; n < numbers.searches; n += 1) {
    const { key } = storedCustomer(Math.floor((n / numbers.searches) * customers), customers)
    // From a beginning that many share to one of their own.
    const query = `cus_${key}`.slice(0, 5 + (n % 8))
    const startedAt = performance.now()
    const answer = await fetch(`http://127.0.0.1:${port}/customers?query=${query}`, {
      headers: { Authorization: `Bearer ${API_KEY}` },
    })
    await answer.text()
    times.push(performance.now() - startedAt)
    if (answer.status !== 200) throw new Error(`A search was answered ${answer.status}.`)
  }
  return times.sort((a, b) => a - b)
}

async function measureWaits(stores: readonly GeneratedStore[]): Promise<Section> {
  const measured = await together(async (use) => {
    const browser = await launchChromium()
    use({ stop: () => browser.close() })
    const daemons: RunningDaemon[] = []
    for (const { configFile } of stores) daemons.push(use(await startLatchkey(configFile)))
    const known = stores.map(
      ({ customers }) => `cus_${storedCustomer(Math.floor(customers / 3), customers).key}`,
    )
    const pages = [
      '/',
      '/customers?query=cus_5',
      '/customers/:id',
      '/products',
      '/products/pro_gold',
      '/changes',
    ]
    const waits = new Map<string, { readonly paint: number[]; readonly whole: number[] }[]>()
    const searches: number[][] = stores.map(() => [])
    for (let round = 0; round < numbers.rounds; round += 1) {
      for (const [i, daemon] of daemons.entries()) {
        const id = known[i] ?? ''
        for (const path of pages) {
          const { firstPaint, whole } = await timePage(browser, daemon, path.replace(':id', id))
          const own = waits.get(path) ?? stores.map(() => ({ paint: [], whole: [] }))
          waits.set(path, own)
          own[i]?.paint.push(firstPaint)
          own[i]?.whole.push(whole)
        }
        searches[i]?.push(await timeSearch(browser, daemon, id))
      }
    }
    const answers: Numbers[] = []
    for (const [i, daemon] of daemons.entries())
      answers.push(await timeAnswers(daemon, stores[i] as GeneratedStore))
    return { waits, searches, answers }
  })
  const row = (what: string, [few = Number.NaN, many = Number.NaN]: Numbers) => ({
    what,
    [`${stores[0]?.customers} customers`]: figure(few),
    [`${stores[1]?.customers} customers`]: figure(many),
    ratio: ratio(many, few),
  })
  const rows = [
    ...[...measured.waits].flatMap(([path, own]) => [
      row(
        `${path}, first paint, ms`,
        own.map(({ paint }) => middle(paint)),
      ),
      row(
        `${path}, all of it, ms`,
        own.map(({ whole }) => middle(whole)),
      ),
    ]),
    row('a search, from the last letter on, ms', measured.searches.map(middle)),
    ...[50, 99].map((percent) =>
      row(
        `GET /customers?query=, p${percent} ms`,
        measured.answers.map((times) => percentile(times, percent)),
      ),
    ),
  ]
  return {
    title: 'Waits',
    explanation: `Medians of ${numbers.rounds} rounds, each page in a browser that has never been there, on the machine of the daemon; ${numbers.searches} searches of the API, one after the other. A search begins 150 ms after the last letter.`,
    table: markdownTable(rows),
    data: { ...measured, waits: Object.fromEntries(measured.waits) },
  }
}

/** The same daemon with the console, without it, and with it after somebody has looked. */
async function measureIdle({ folder: own, configFile }: GeneratedStore): Promise<Section> {
  const off = join(own, 'without-console.json')
  writeFileSync(off, JSON.stringify({ ...JSON.parse(readFileSync(configFile, 'utf8')), console: false }))
  const kinds = {
    'without the console': off,
    'with the console': configFile,
    'after a look at it': configFile,
  }
  const found = Object.keys(kinds).map((name) => ({ name, start: [] as number[], memory: [] as number[] }))
  const browser = await launchChromium()
  for (let round = 0; round < numbers.rounds; round += 1) {
    for (const one of found) {
      const daemon = await startLatchkey(kinds[one.name as keyof typeof kinds])
      if (one.name === 'after a look at it') await timePage(browser, daemon, '/')
      await wait(IDLE_MS)
      one.start.push(daemon.readyAfterMs)
      one.memory.push(memoryUse(daemon.pid).residentMb)
      await daemon.stop()
    }
  }
  await browser.close()
  const [base] = found
  return {
    title: 'Nobody looks',
    explanation: `Medians of ${numbers.rounds} starts each, in turn, on ${FEW_CUSTOMERS} customers; memory ${IDLE_MS / 1000} s later.`,
    table: markdownTable(
      found.map(({ name, start, memory }) => ({
        daemon: name,
        'start to ready, ms': figure(median(start)),
        '×': ratio(median(start), median(base?.start ?? [])),
        'resident MB': figure(median(memory)),
        '× ': ratio(median(memory), median(base?.memory ?? [])),
      })),
    ),
    data: found,
  }
}

const work = createWorkFolder(folder)
const few = await generateStore(join(work, 'few'), { customers: FEW_CUSTOMERS, eventsPerCustomer: 2 })
const many = await generateStore(join(work, 'many'), { customers: numbers.customers, eventsPerCustomer: 2 })
report('console', machine, [await measureWaits([few, many]), await measureIdle(few)])
