import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { keyEntry, ROOT } from '../world.js'
import { API_KEY, ask, type RunningDaemon, runDaemon } from './running-daemon.js'

const ENDPOINTS = {
  live: { environment: 'live', secrets: ['whsec_live_0123456789'] },
  sandbox: { environment: 'sandbox', secrets: ['whsec_sandbox_0123456789'] },
}
const SANDBOX_KEY = 'lk_sandbox_key'
const KEYS = [
  { ...keyEntry('operator', API_KEY), scopes: ['metrics'], environments: ['live', 'sandbox'] },
  { ...keyEntry('app', SANDBOX_KEY), scopes: ['metrics'], environments: ['sandbox'] },
]
const CONFIG = { endpoints: ENDPOINTS, api: { keys: KEYS } }

async function scrape(daemon: RunningDaemon, key = API_KEY): Promise<readonly string[]> {
  const answer = await ask(daemon, '/metrics', { Authorization: `Bearer ${key}` })
  expect(answer.status).toBe(200)
  return (await answer.text()).split('\n')
}

describe('the first scrape', () => {
  it('has every counter that an alert takes the increase of, at 0', async () => {
    const daemon = await runDaemon({ config: { ...CONFIG, backup: { folder: 'backups', every: '1d' } } })
    const alerts = readFileSync(join(ROOT, 'deploy', 'alerts.yaml'), 'utf8')
    const names = [...alerts.matchAll(/\b(?:increase|rate)\((\w+)/g)].map(([, name]) => name)
    const lines = await scrape(daemon)
    expect(names.length).toBeGreaterThan(8)
    for (const name of names) {
      const samples = lines.filter((line) => new RegExp(`^${name}[ {]`).test(line))
      expect([name, samples.length > 0]).toEqual([name, true])
      expect([name, samples.filter((line) => !line.endsWith(' 0'))]).toEqual([name, []])
    }
  })

  it('has a series for every endpoint and every reason, and of a new endpoint after a reload', async () => {
    const daemon = await runDaemon({ config: CONFIG })
    const added = { ...ENDPOINTS, added: ENDPOINTS.live }
    for (const [names, read] of [
      [['live', 'sandbox'], async () => {}],
      [['live', 'sandbox', 'added'], () => daemon.readAgain({ ...CONFIG, endpoints: added })],
    ] as const) {
      await read()
      const lines = await scrape(daemon)
      for (const endpoint of names) {
        expect(lines).toContain(`latchkey_conflicts_total{endpoint="${endpoint}"} 0`)
        expect(lines).toContain(`latchkey_deliveries_not_stored_total{endpoint="${endpoint}"} 0`)
        for (const code of [
          'signature_missing',
          'signature_invalid',
          'timestamp_invalid',
          'timestamp_out_of_tolerance',
        ])
          expect(lines).toContain(
            `latchkey_signatures_rejected_total{endpoint="${endpoint}",code="${code}"} 0`,
          )
      }
    }
  })
})

it('a key for one environment is told which metrics it does not get', async () => {
  const daemon = await runDaemon({ config: CONFIG })
  const all = await scrape(daemon)
  expect(all.some((line) => line.startsWith('latchkey_ready '))).toBe(true)
  expect(all.some((line) => line.startsWith('# A key'))).toBe(false)
  const some = await scrape(daemon, SANDBOX_KEY)
  expect(some.some((line) => line.startsWith('latchkey_ready '))).toBe(false)
  const [comment = ''] = some.filter((line) => line.startsWith('# A key'))
  expect(comment).toMatch(/^# A key for sandbox alone does not get: /)
  const named = comment.split(': ')[1]?.split(', ') ?? []
  expect(named).toEqual(
    expect.arrayContaining(['latchkey_ready', 'latchkey_info', 'latchkey_database_size_bytes']),
  )
  // Of what it gets, series of its own environment alone.
  expect(named).not.toContain('latchkey_events_waiting')
  expect(some.at(-1)).toBe('')
})
