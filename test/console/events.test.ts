import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { misread } from '../setup/alter-body.js'
import { deliver as deliverAll, send } from '../stories.js'
import { type AskedDaemon, ask, databaseIn, entitlementsOf, serveHere } from '../world.js'
import { paidStory, receive, refundedStory } from './seeded.js'
import { consoleConfig, expectNoFault, serveConsole, useConsole } from './signed-in.js'

const browser = useConsole()

const deliver = async (daemon: AskedDaemon, body: string): Promise<void> =>
  expect(await send(daemon.url, { id: '', body })).toMatchObject({ status: 200 })

const rows = (page: Page) => page.getByRole('table').getByRole('row')

describe('the stored events', () => {
  it('are chosen by a filter in the address, and come page by page', async () => {
    const daemon = await serveConsole()
    await deliverAll(daemon.url, Array.from({ length: 60 }, (_, n) => paidStory(`cus_${n}`)).flat())
    await receive(daemon, refundedStory())
    const { page, faults } = await browser.open(daemon, '/events')
    await page.getByRole('link', { name: 'evt_cus_ada_refunded' }).waitFor()
    expect(await rows(page).count()).toBe(51)
    await page.getByRole('button', { name: 'More' }).click()
    await page.getByRole('button', { name: 'More' }).waitFor({ state: 'detached' })
    expect(await rows(page).count()).toBe(66)
    await expectNoFault(page)

    await page.getByLabel('Subscription').fill('sub_cus_ada')
    await page.keyboard.press('Enter')
    await page.waitForURL(/subscriptionId=sub_cus_ada/)
    await page.getByLabel('Type').fill('payment.authorized')
    await page.keyboard.press('Enter')
    await page.waitForURL(/type=payment.authorized/)
    await page.getByRole('link', { name: 'evt_cus_ada_refunded' }).waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'evt_cus_ada_paid_again' }).waitFor()
    expect(await rows(page).count()).toBe(3)
    expect(await page.getByRole('button', { name: 'Export these…' }).isDisabled()).toBe(true)
    await page.goBack()
    await page.getByRole('link', { name: 'evt_cus_ada_refunded' }).waitFor()
    await page.getByRole('button', { name: 'Clear' }).click()
    await page.getByRole('button', { name: 'More' }).waitFor()
    expect(faults()).toEqual([])
  })

  it('are none where nothing matches, and a mistake in a filter is named', async () => {
    const daemon = await serveConsole()
    const { page } = await browser.open(daemon, '/events?environment=sandbox')
    await page.getByText('No event was received in sandbox.').waitFor()
    await page.getByLabel('Disposition').selectOption('held')
    await page.getByText('No event in sandbox matches.').waitFor()
    await page.getByLabel('Type').fill('payment.autorized')
    await page.keyboard.press('Enter')
    await page.getByText('the closest one is "payment.authorized"').first().waitFor()
    await expectNoFault(page)
  })

  it('are for keys with the scope alone, which need more for a replay', async () => {
    const daemon = await serveConsole(
      consoleConfig({ lk_reader: { scopes: ['read'] }, lk_events: { scopes: ['events'] } }),
    )
    await receive(daemon, paidStory('cus_1'))
    const { page: refused } = await browser.open(daemon, '/events', { key: 'lk_reader' })
    await refused.getByText('This page needs a key with the scope events.').waitFor()
    const { page } = await browser.open(daemon, '/events', { key: 'lk_events' })
    await page.getByRole('button', { name: 'Export these…' }).waitFor()
    expect(await page.getByRole('button', { name: 'Replay these…' }).count()).toBe(0)
    expect(await page.getByRole('link', { name: 'cus_1', exact: true }).count()).toBe(0)
  })

  it('are exported as lines that an import takes', async () => {
    const daemon = await serveConsole()
    await receive(daemon, refundedStory())
    const { page, faults } = await browser.open(daemon, '/events?type=payment.authorized')
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export these…' }).click()
    const download = await saved
    expect(download.suggestedFilename()).toBe('latchkey-live-events.jsonl')
    await page.getByText('Saved 2 lines.').waitFor()
    const { lines } = (await (
      await ask(daemon, '/exports?type=payment.authorized&environment=live')
    ).json()) as {
      lines: string[]
    }
    expect(await readFile(await download.path(), 'utf8')).toBe(`${lines.join('\n')}\n`)
    expect(faults()).toEqual([])
  })
})

describe('an event', () => {
  it('is shown as it came, to the last digit, and as it was read', async () => {
    const daemon = await serveConsole()
    const body =
      '{"id":"evt_1","type":"payment.authorized","createdAt":"2026-01-31T12:00:00Z","livemode":true,' +
      '"data":{"object":"payment","id":"pay_1","method":"CARD","customer":{"object":"customer","id":"cus_1"},' +
      '"product":{"object":"product","id":"pro_gold"},"fee":0.10000000000000000001,' +
      '"note":"a\\u0062 \u202e <script>alert(1)</script>","2":1,"1":[]}}'
    await deliver(daemon, body)
    await deliver(daemon, body)
    const { page, faults } = await browser.open(daemon, '/events/evt_1')
    const came = page.locator('pre').nth(1)
    await came.getByText('"fee": 0.10000000000000000001,').waitFor()
    const shown = await came.innerText()
    expect(shown).toContain('"note": "a\\u0062 \\u202e <script>alert(1)</script>",\n    "2": 1,\n    "1": []')
    await page.getByText('"paymentId": "pay_1"').waitFor()
    await page.getByText('2 times, counted once').waitFor()
    await page.getByRole('button', { name: 'Without indentation' }).click()
    await came.getByText('{"id":"evt_1","type"').waitFor()
    const saved = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Download the bytes' }).click()
    expect(await readFile(await (await saved).path(), 'utf8')).toBe(body)
    await expectNoFault(page)
    expect(faults()).toEqual([])
  })

  it('is shown byte by byte where it is not text, with why it can’t be used', async () => {
    const daemon = await serveConsole()
    const bytes = Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d])
    await deliver(daemon, bytes as unknown as string)
    const { page, faults } = await browser.open(daemon, '/events?disposition=quarantined')
    await page.getByRole('link', { name: /^sha256:/ }).click()
    await page.getByText('It is not UTF-8.').waitFor()
    await page.getByText('7b 22 ff fe 22 7d').waitFor()
    await page.getByText('nothing was read from it').waitFor()
    await expectNoFault(page)
    expect(faults()).toEqual([])
  })

  it('shows other bodies that came under its id', async () => {
    const daemon = await serveConsole()
    const [first] = paidStory('cus_1')
    const [second] = paidStory('cus_1', Date.now() - 60_000)
    await deliver(daemon, first?.body ?? '')
    await deliver(daemon, second?.body ?? '')
    const { page, faults } = await browser.open(daemon, '/events?conflicts=true')
    await page.getByText('conflict', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'evt_cus_1_silver' }).click()
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByText('did not count').waitFor()
    const other = JSON.parse(second?.body ?? '') as { createdAt: string }
    await page.locator('pre').nth(1).getByText(other.createdAt).waitFor()
    await expectNoFault(page)
    expect(faults()).toEqual([])
  })

  it('is not there: the page says so, and what the daemon said', async () => {
    const daemon = await serveConsole()
    const { page } = await browser.open(daemon, '/events/evt_nobody')
    await page.getByRole('alert').getByText('No such event is stored in this environment.').waitFor()
    await expectNoFault(page)
  })
})

describe('a replay', () => {
  const [PAID] = paidStory('cus_1')
  const body = PAID?.body ?? ''

  /** A daemon whose store holds a payment that the program before this one could not read. */
  async function serveAfterMisreading() {
    const { folder, stop, url } = await serveConsole()
    await deliver({ url } as AskedDaemon, 'nobody can read this')
    await stop()
    await misread(databaseIn(folder), [{ unreadable: 'nobody can read this', body }])
    const daemon = await serveHere(folder)
    await receive(daemon, refundedStory())
    return daemon
  }

  it('of a filter says first who would gain access, then is done', async () => {
    const daemon = await serveAfterMisreading()
    const { page, faults } = await browser.open(daemon, '/events?disposition=quarantined')
    await page.getByRole('link', { name: /^sha256:/ }).waitFor()
    await page.getByRole('button', { name: 'Replay these…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('1 would gain it').waitFor()
    await dialog.getByRole('link', { name: 'cus_1' }).waitFor()
    expect(await entitlementsOf(daemon, 'cus_1')).toEqual([])
    await expectNoFault(page)
    await dialog.getByRole('button', { name: 'Replay', exact: true }).click()
    await page.getByText('1 gained access and 0 lost it').waitFor()
    await page.getByText('No event in live matches.').waitFor()
    expect(await entitlementsOf(daemon, 'cus_1')).toMatchObject([{ active: true }])
    expect(faults()).toEqual([])
  })

  it('of one event reads that one alone', async () => {
    const daemon = await serveAfterMisreading()
    const { page } = await browser.open(daemon, '/events/evt_cus_ada_refunded')
    await page.getByRole('button', { name: 'Replay…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('1 event read, 0 would be read differently').waitFor()
    await dialog.getByText('Nobody’s access would change.').waitFor()
    await daemon.stop()
    await dialog.getByRole('button', { name: 'Replay', exact: true }).click()
    await dialog.getByText('The daemon does not answer.').waitFor()
  })
})
