import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { eventsExportCommand } from '../../src/cli/events.js'
import { runCli } from '../../src/cli/program.js'
import { temporaryFolder } from '../config/config-file.js'
import { byHand } from '../entitlements/events.js'
import { alterStopped } from '../setup/alter-body.js'
import { temporaryFile } from '../store/temporary-store.js'
import { NOW } from './run-cli.js'
import { BEGUN, BROKEN, configFor, configWith, events, HELD, linesOf, OTHER, PAID } from './stored-events.js'

describe('latchkey events export', () => {
  it('writes what came, oldest first, so that it can be checked and taken in again', async () => {
    const { exitCode, out } = await events(await configWith(), 'export')
    expect(exitCode).toBe(0)
    const lines = linesOf(out).map((line) => JSON.parse(line))
    expect(lines[0]).toEqual({
      endpoint: 'v3',
      headers: {
        'x-webhook-event': 'payment.authorized',
        'x-webhook-timestamp': '1',
        'x-webhook-signature': 'v1=aa',
      },
      bodyBase64: Buffer.from(PAID).toString('base64'),
      receivedAt: '2026-01-01T01:00:00.000Z',
    })
    expect(lines.map(({ bodyBase64 }) => Buffer.from(bodyBase64, 'base64'))).toEqual(
      [PAID, OTHER, BEGUN, HELD, BROKEN].map((body) => Buffer.from(body)),
    )
    expect(lines[2].headers).not.toHaveProperty('x-webhook-event')
    expect(lines[4].endpoint).toBe('legacy')
  })

  it('writes what was done by hand as its own kind, which nobody signed', async () => {
    const { createdAt: _, ...undated } = byHand('manual.granted', 0)
    const { out } = await events(await configWith([{ environment: 'live', undated }]), 'export')
    const { bodyBase64, ...line } = JSON.parse(out)
    expect(line).toEqual({ kind: 'manual', environment: 'live', receivedAt: new Date(NOW).toISOString() })
    expect(JSON.parse(Buffer.from(bodyBase64, 'base64').toString())).toMatchObject(undated)
  })

  it('writes only what the filter means', async () => {
    const { out } = await events(await configWith(), 'export', '--type', 'subscription.created')
    expect(JSON.parse(out).bodyBase64).toBe(Buffer.from(BEGUN).toString('base64'))
  })

  it('writes a file that only its owner may read, whole or not at all', async () => {
    const config = await configWith()
    const folder = temporaryFolder()
    const file = join(folder, 'events.jsonl')
    expect(await events(config, 'export', '--output', file)).toEqual({
      exitCode: 0,
      out: `wrote 5 lines to ${file}\n`,
      err: '',
    })
    expect(readFileSync(file, 'utf8')).toBe((await events(config, 'export')).out)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readdirSync(folder)).toEqual(['events.jsonl'])
  })

  it('replaces no file unless told to', async () => {
    const config = await configWith()
    const folder = temporaryFolder()
    const file = join(folder, 'events.jsonl')
    writeFileSync(file, 'precious')
    const refused = await events(config, 'export', '--output', file)
    expect(refused.exitCode).toBe(1)
    expect(refused.err).toContain('--force')
    expect(readFileSync(file, 'utf8')).toBe('precious')
    const forced = await events(config, 'export', '--output', file, '--force', '--json')
    expect(JSON.parse(forced.out)).toEqual({ file, lines: 5, readings: 0, leftOut: 0, altered: 0 })
    expect(linesOf(readFileSync(file, 'utf8'))).toHaveLength(5)
    expect(readdirSync(folder)).toEqual(['events.jsonl'])
  })

  it('leaves out bodies that were altered in the database, and says how many', async () => {
    const file = temporaryFile()
    const config = await configWith(undefined, file)
    await alterStopped(file, 'evt_2', PAID)
    const { exitCode, out, err } = await events(config, 'export')
    expect(exitCode).toBe(0)
    expect(linesOf(out).map((line) => JSON.parse(line).bodyBase64)).toEqual(
      [PAID, OTHER, HELD, BROKEN].map((body) => Buffer.from(body).toString('base64')),
    )
    expect(err).toBe(
      'left out: one body is not what came any more, but altered in the database: see latchkey doctor --thorough\n',
    )
    const output = join(temporaryFolder(), 'events.jsonl')
    const told = await events(config, 'export', '--output', output, '--json')
    expect(JSON.parse(told.out)).toEqual({ file: output, lines: 4, readings: 0, leftOut: 1, altered: 1 })
  })

  it('makes no file where nothing can have been meant', async () => {
    const folder = temporaryFolder()
    const args = ['export', '--endpoint', 'liv', '--output', join(folder, 'a.jsonl')]
    expect((await events(await configWith(), ...args)).exitCode).toBe(2)
    expect(readdirSync(folder)).toEqual([])
  })

  it('leaves nothing behind where it fails, and says which file it could not write', async () => {
    const missing = configFor(temporaryFile())
    const folder = temporaryFolder()
    expect((await events(missing, 'export', '--output', join(folder, 'a.jsonl'))).exitCode).toBe(1)
    expect(readdirSync(folder)).toEqual([])
    const nowhere = join(folder, 'no', 'such', 'folder.jsonl')
    const { exitCode, err } = await events(await configWith(), 'export', '--output', nowhere, '--json')
    expect({ exitCode, code: JSON.parse(err).error.code }).toEqual({ exitCode: 1, code: 'output_failed' })
    expect(existsSync(nowhere)).toBe(false)
  })

  it.each([
    [true, 'shows a person how far it is'],
    [false, 'shows nothing of that in a pipe'],
  ])('on a terminal (%s) %s', async (isTerminal) => {
    const config = await configWith()
    let err = ''
    const world = { env: {}, folder: temporaryFolder(), now: () => NOW, isTerminal, out: () => {} }
    const told = (text: string) => {
      err += text
    }
    const args = ['events', 'export', '--output', 'e.jsonl', '--config', config]
    expect(await runCli(args, { ...world, err: told }, [eventsExportCommand])).toBe(0)
    expect(err).toBe(isTerminal ? `\r${'█'.repeat(24)} 100 %  5 lines written\r\u001b[K` : '')
  })
})
