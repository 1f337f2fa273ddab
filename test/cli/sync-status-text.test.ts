import { expect, it } from 'vitest'
import { statusText } from '../../src/cli/sync.js'
import type { SyncStatusJson } from '../../src/handlers/sync.js'

const NOW = Date.parse('2026-03-02T12:00:00Z')
const COUNTS = { settled: 5, due: 0, retrying: 0, waiting: 0, parked: 0, unconfirmed: 0 }
const TARGET: SyncStatusJson['targets'][number] = {
  environment: 'live',
  target: 'discord:1:2',
  state: 'ok',
  until: null,
  reason: null,
  memberships: COUNTS,
}
const STATUS: SyncStatusJson = {
  paused: false,
  unconfirmed: 0,
  sweptAt: null,
  checked: null,
  platforms: [],
  targets: [TARGET],
  webhook: null,
  unreachable: [],
}

it('says once why a target is stopped, though a check has found the same', () => {
  const reason = { code: 'role_not_found', message: 'The server 1 has no role 2: correct the roleId.' }
  const checked = {
    at: '2026-03-02T11:00:00.000Z',
    problems: [
      { about: 'discord:1:2', message: reason.message },
      { about: 'telegram', message: 'The bot token is wrong.' },
    ],
  }
  const text = statusText({ ...STATUS, targets: [{ ...TARGET, state: 'stopped', reason }], checked }, NOW)
  expect(text.split('\n')).toEqual([
    'live  discord:1:2  5 settled',
    'discord:1:2: stopped until `latchkey sync run`: The server 1 has no role 2: correct the roleId.',
    'telegram: The bot token is wrong. (checked 1h ago)',
    '',
  ])
})

it('tells who waits for the customer from who waits for an operator', () => {
  const memberships = { ...COUNTS, waiting: 3, parked: 1 }
  expect(statusText({ ...STATUS, targets: [{ ...TARGET, memberships }] }, NOW).split('\n')).toEqual([
    'live  discord:1:2  5 settled, 3 waiting, 1 parked',
    'what is waiting comes by itself once the customer joins: see `latchkey sync status --state waiting`',
    'what is parked waits for somebody: see `latchkey sync status --state parked`',
    '',
  ])
})

it.each([
  [
    '2026-03-02T12:00:01.000Z',
    'discord: no call before 2026-03-02T12:00:01.000Z: Discord could not be reached.',
  ],
  ['2026-03-02T12:00:00.000Z', 'discord: tried again with the next call: Discord could not be reached.'],
  ['2026-03-02T11:59:57.000Z', 'discord: tried again with the next call: Discord could not be reached.'],
])('tells a limit until %s as a wait only while it is one', (until, line) => {
  const reason = { code: 'platform_unreachable', message: 'Discord could not be reached.' }
  const platforms = [{ platform: 'discord', state: 'limited', until, reason } as const]
  expect(statusText({ ...STATUS, platforms }, NOW).split('\n')).toEqual([
    'live  discord:1:2  5 settled',
    line,
    '',
  ])
})

it('tells since when a platform is unreachable', () => {
  const reason = 'Discord could not be reached.'
  const since = '2026-03-02T11:58:00.000Z'
  const unreachable = [{ platform: 'discord', since, reason } as const]
  expect(statusText({ ...STATUS, unreachable }, NOW).split('\n')).toEqual([
    'live  discord:1:2  5 settled',
    'discord: unreachable since 2026-03-02T11:58:00.000Z: Discord could not be reached.',
    '',
  ])
})
