import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { eventually } from '../setup/eventually.js'
import { API_KEY, answerOf, configuredFolder, failureOf, run, temporaryFolder } from '../world.js'
import { consoleConfig, serveConsole, useConsole } from './signed-in.js'

const browser = useConsole()
const START = Date.parse('2026-03-01T12:00:00Z')

const follow = (url: string, method = 'GET') => fetch(url, { method, redirect: 'manual' })
const UNUSABLE = { status: 303, location: '/console/sign-in?problem=link_used', cookie: null }
const seen = ({ status, headers }: Response) => ({
  status,
  location: headers.get('location'),
  cookie: headers.get('set-cookie'),
})
const SIGNED_IN = {
  status: 303,
  location: '/console/',
  cookie: expect.stringMatching(
    /^latchkey-console=[\w.-]+; Path=\/console; Max-Age=28800; HttpOnly; SameSite=Strict$/,
  ),
}

describe('latchkey console', () => {
  it('prints a link that opens the console with all rights, and is not left in the address', async () => {
    const daemon = await serveConsole()
    const { code, stdout } = await run(daemon.folder, 'console')
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/console\/link\?token=\S{43}\n$/),
    ])
    const { page, faults } = await browser.open(daemon, '/sign-in', { key: null })
    await page.goto(stdout.trim())
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.getByText('What the doctor found').waitFor()
    expect(page.url()).toBe(`${daemon.url}/console/`)
    await page.goto(stdout.trim())
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.context().clearCookies()
    await page.goto(stdout.trim())
    await page.getByRole('alert').getByText('This link was used').waitFor()
    expect(faults().filter((one) => !one.includes('401'))).toEqual([])
  })

  it('makes a link that counts once, also where two requests race, and that looking at it does not use up', async () => {
    const daemon = await serveConsole()
    const { url } = await answerOf(daemon.folder, 'console')
    expect((await follow(url, 'HEAD')).status).toBe(405)
    const answers = await Promise.all(Array.from({ length: 8 }, () => follow(url)))
    const cookies = answers
      .map(seen)
      .sort((a, b) => (a.cookie === null ? 1 : 0) - (b.cookie === null ? 1 : 0))
    expect(cookies).toEqual([SIGNED_IN, ...Array.from({ length: 7 }, () => UNUSABLE)])
    expect(seen(await follow(url.slice(0, -1)))).toEqual(UNUSABLE)
  })

  it('makes a link for a minute', async () => {
    let now = START
    const daemon = await serveConsole(consoleConfig(), () => now)
    const [early, late] = [await answerOf(daemon.folder, 'console'), await answerOf(daemon.folder, 'console')]
    expect(early.expiresAt).toBe('2026-03-01T12:01:00.000Z')
    now = START + 59_999
    expect(seen(await follow(early.url))).toEqual(SIGNED_IN)
    now = START + 60_000
    expect(seen(await follow(late.url))).toEqual(UNUSABLE)
  })

  it('gives with a key the rights of that key, which must be an operator’s', async () => {
    const daemon = await serveConsole(
      consoleConfig({ lk_admin: { scopes: ['admin'] }, lk_reader: { scopes: ['read'] } }),
    )
    const { url } = await answerOf(daemon.folder, `console --url ${daemon.url}`, {
      env: { LATCHKEY_API_KEY: 'lk_admin' },
    })
    const cookie = (await follow(url)).headers.get('set-cookie')?.split(';')[0] ?? ''
    const asked = await fetch(`${daemon.url}/console/api/console/session`, { headers: { Cookie: cookie } })
    expect(await asked.json()).toMatchObject({ key: 'lk_admin', scopes: ['admin'] })
    const refused = await failureOf(daemon.folder, `console --url ${daemon.url}`, {
      env: { LATCHKEY_API_KEY: 'lk_reader' },
    })
    expect(refused).toMatchObject({ code: 1, error: { code: 'forbidden' } })
  })

  it('opens the browser where there is a terminal and a display, unless it should not', async () => {
    const daemon = await serveConsole()
    const folder = temporaryFolder()
    const [program, opened] = [join(folder, 'xdg-open'), join(folder, 'opened')]
    writeFileSync(program, `#!/bin/sh\necho "$1" > ${opened}.part && mv ${opened}.part ${opened}\n`)
    chmodSync(program, 0o755)
    const env = { PATH: `${folder}:${process.env.PATH}`, DISPLAY: ':0' }
    for (const [words, options] of [
      ['console', { isTerminal: false, env }],
      ['console', { isTerminal: true, env: { PATH: env.PATH } }],
      ['console --no-open', { isTerminal: true, env }],
    ] as const) {
      expect((await run(daemon.folder, words, options)).stdout).toMatch(/^http/)
      expect(existsSync(opened)).toBe(false)
    }
    const { stdout } = await run(daemon.folder, 'console', { isTerminal: true, env })
    expect(stdout).toMatch(/^opened in the browser: http/)
    await eventually(() => expect(existsSync(opened)).toBe(true))
    expect(stdout).toContain(readFileSync(opened, 'utf8').trim())
  })

  it('says what to do where nothing runs, and where the console is off', async () => {
    const folder = configuredFolder(consoleConfig({}, { console: false }))
    expect(await failureOf(folder, 'console')).toMatchObject({
      code: 1,
      error: { code: 'daemon_unreachable' },
    })
    const daemon = await serveConsole(consoleConfig({}, { console: false }))
    const { error } = await failureOf(daemon.folder, 'console')
    expect(error.message).toContain('set "console" to true in the config')
    expect(
      (
        await fetch(`${daemon.url}/console/links`, {
          method: 'POST',
          headers: { Authorization: `Bearer ${API_KEY}` },
        })
      ).status,
    ).toBe(404)
  })
})

it('a session of the local socket ends with its daemon', async () => {
  const daemon = await serveConsole()
  const { url } = await answerOf(daemon.folder, 'console')
  const cookie = (await follow(url)).headers.get('set-cookie')?.split(';')[0] ?? ''
  const statusAt = async (at: string) =>
    (await fetch(`${at}/console/api/status`, { headers: { Cookie: cookie } })).status
  expect(await statusAt(daemon.url)).toBe(200)
  await daemon.stop()
  const other = await serveConsole()
  expect(await statusAt(other.url)).toBe(401)
})
