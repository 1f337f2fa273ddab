import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { misread } from '../setup/alter-body.js'
import { expectNoFault } from '../setup/no-fault.js'
import { send } from '../stories.js'
import { type AskedDaemon, databaseIn, entitlementsOf, serveHere } from '../world.js'
import { paidStory, receive, refundedStory } from './seeded.js'
import { consoleConfig, serveConsole, useConsole } from './signed-in.js'

const browser = useConsole()

const deliver = async (daemon: AskedDaemon, body: string): Promise<void> =>
  expect(await send(daemon.url, { id: '', body })).toMatchObject({ status: 200 })

describe('the stored events', () => {
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
})
