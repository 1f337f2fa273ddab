import { describe, expect, it, vi } from 'vitest'
import { LatchkeyError } from '../../src/errors.js'
import type { SyncQuestions } from '../../src/handlers/sync.js'
import type { MembershipQuery, MembershipView } from '../../src/sync/plan.js'
import type { RunOptions } from '../../src/sync/sync.js'
import { eventually } from '../setup/eventually.js'
import { apiKey, bearer, NOW, openFront, SYNC_OFF } from './daemon-front.js'

const VIEW: MembershipView = {
  environment: 'live',
  target: 'discord:1:2',
  accountId: '42',
  customerId: 'cus_1',
  state: 'parked',
  desired: true,
  desiredSince: NOW,
  applied: 'absent',
  appliedAt: null,
  given: false,
  attempts: 3,
  nextAttemptAt: null,
  parked: { code: 'member_missing', message: 'They are not in the community.' },
  lastError: null,
}
const COUNTS = { settled: 1, due: 0, retrying: 0, waiting: 0, parked: 1, unconfirmed: 0 }
const RAN = {
  paused: false,
  given: 1,
  taken: 0,
  unchanged: 0,
  failed: 0,
  waiting: 0,
  parked: 0,
  unconfirmed: 0,
  stopped: 0,
  left: 0,
  messages: 0,
}

interface Answered {
  readonly targets?: readonly { readonly environment: string }[]
  readonly calls?: readonly { readonly environment: string }[]
  readonly items?: readonly unknown[]
  readonly pagination?: { readonly nextCursor: string | null; readonly hasMore: boolean }
}

/** A front whose sync has a live and a sandbox target; `root` may ask about both, `live` about one. */
async function openWithSync(overrides: Partial<SyncQuestions> = {}) {
  const asked: MembershipQuery[] = []
  const ran: RunOptions[] = []
  const call = (environment: 'live' | 'sandbox') => ({
    environment,
    target: VIEW.target,
    accountId: '42',
    customerId: 'cus_1',
    action: 'take' as const,
    needsConfirmation: true,
  })
  const front = await openFront({
    apiKeys: () => [
      apiKey('root', { scopes: ['admin'], environments: ['live', 'sandbox'] }),
      apiKey('live', { scopes: ['admin'] }),
      apiKey('app', { scopes: ['read', 'write', 'events', 'metrics'] }),
    ],
    sync: {
      ...SYNC_OFF,
      targets: (environments = ['live', 'sandbox']) => [
        ...(environments.includes('live') ? [VIEW.target] : []),
        ...(environments.includes('sandbox') ? ['telegram:-100'] : []),
      ],
      status: async (environments = ['live', 'sandbox']) => ({
        paused: false,
        platforms: [
          {
            platform: 'discord',
            state: 'limited',
            until: NOW + 1_000,
            reason: { code: 'limited', message: 'Slow down.' },
          },
        ],
        targets: [
          {
            environment: 'live',
            target: VIEW.target,
            state: 'ok',
            until: null,
            reason: null,
            memberships: COUNTS,
          } as const,
          {
            environment: 'sandbox',
            target: 'telegram:-100',
            state: 'stopped',
            until: null,
            reason: { code: 'token_refused', message: 'Set the token.' },
            memberships: COUNTS,
          } as const,
        ].filter(({ environment }) => environments.includes(environment)),
        unconfirmed: 0,
        sweptAt: NOW,
        checked: { at: NOW, problems: [{ about: 'discord', isFine: false, message: 'Invite the bot.' }] },
        webhook: {
          origin: 'https://app.example',
          messages: [{ state: 'parked', reason: 'gone', count: 2, oldestAt: NOW, lastError: 'answered 410' }],
        },
        unreachable: [{ platform: 'discord', since: NOW, reason: 'Discord could not be reached.' }],
      }),
      memberships: async (query) => {
        asked.push(query)
        return { items: [VIEW], next: query.after === undefined ? VIEW : null }
      },
      plan: async (environments = ['live', 'sandbox']) => ({
        paused: true,
        hash: environments.join(' and '),
        calls: environments.map(call),
      }),
      run: async (options) => {
        ran.push(options)
        return RAN
      },
      check: async () => [{ about: 'discord', isFine: false, message: 'The token is not valid.' }],
      ...overrides,
    },
  })
  const ask = async (
    method: string,
    path: string,
    { key = 'root', body }: { key?: string; body?: string } = {},
  ) => {
    const answer = await fetch(`${front.url}${path}`, {
      method,
      headers: { ...bearer(key), 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body }),
    })
    return { status: answer.status, json: (await answer.json()) as Answered }
  }
  return { ask, asked, ran, logged: front.logged }
}

const ROUTES = [
  ['GET', '/sync'],
  ['GET', '/sync/memberships'],
  ['GET', '/sync/plan'],
  ['GET', '/sync/check'],
  ['POST', '/sync/run'],
  ['POST', '/sync/pause'],
  ['POST', '/sync/resume'],
] as const

describe('the routes about what follows access', () => {
  it.each(ROUTES)('%s %s needs the scope admin, and no other method', async (method, path) => {
    const { ask } = await openWithSync()
    expect(await ask(method, path, { key: 'app' })).toMatchObject({
      status: 403,
      json: { code: 'forbidden' },
    })
    expect(await ask(method, path, { key: 'none' })).toMatchObject({ status: 401 })
    expect(await ask('PUT', path)).toMatchObject({ status: 405, json: { code: 'method_not_allowed' } })
    expect((await ask(method, path)).status).toBe(200)
  })

  it.each(ROUTES)('%s %s answers where nothing is configured, too', async (method, path) => {
    const { ask } = await openWithSync(SYNC_OFF)
    expect((await ask(method, path)).status).toBe(200)
  })

  it('tell how it stands, also where nothing is configured', async () => {
    const { ask } = await openWithSync(SYNC_OFF)
    expect(await ask('GET', '/sync')).toEqual({
      status: 200,
      json: {
        paused: false,
        unconfirmed: 0,
        sweptAt: null,
        checked: null,
        platforms: [],
        targets: [],
        webhook: null,
        unreachable: [],
      },
    })
  })

  it('show the state of platforms, targets and the outbound webhook', async () => {
    const { ask } = await openWithSync()
    expect((await ask('GET', '/sync')).json).toEqual({
      paused: false,
      unconfirmed: 0,
      sweptAt: '2026-03-01T12:00:00.000Z',
      checked: {
        at: '2026-03-01T12:00:00.000Z',
        problems: [{ about: 'discord', message: 'Invite the bot.' }],
      },
      platforms: [
        {
          platform: 'discord',
          state: 'limited',
          until: '2026-03-01T12:00:01.000Z',
          reason: { code: 'limited', message: 'Slow down.' },
        },
      ],
      targets: [
        {
          environment: 'live',
          target: 'discord:1:2',
          state: 'ok',
          until: null,
          reason: null,
          memberships: COUNTS,
        },
        {
          environment: 'sandbox',
          target: 'telegram:-100',
          state: 'stopped',
          until: null,
          reason: { code: 'token_refused', message: 'Set the token.' },
          memberships: COUNTS,
        },
      ],
      webhook: {
        origin: 'https://app.example',
        messages: [
          {
            state: 'parked',
            reason: 'gone',
            count: 2,
            oldestAt: '2026-03-01T12:00:00.000Z',
            lastError: 'answered 410',
          },
        ],
      },
      unreachable: [
        {
          platform: 'discord',
          since: '2026-03-01T12:00:00.000Z',
          reason: 'Discord could not be reached.',
        },
      ],
    })
  })

  it.each(['/sync', '/sync/plan'])('%s shows no environment that the key is not for', async (path) => {
    const { ask } = await openWithSync()
    const shown = async (query: string, key: string) => {
      const { json } = await ask('GET', `${path}${query}`, { key })
      return (json.targets ?? json.calls ?? []).map(({ environment }) => environment)
    }
    expect(await shown('', 'root')).toEqual(['live', 'sandbox'])
    expect(await shown('?environment=sandbox', 'root')).toEqual(['sandbox'])
    expect(await shown('', 'live')).toEqual(['live'])
    expect((await ask('GET', `${path}?environment=sandbox`, { key: 'live' })).status).toBe(403)
  })

  it('list memberships by what is asked, page by page', async () => {
    const { ask, asked } = await openWithSync()
    const query = 'state=parked&target=discord:1:2&customerId=cus_1&limit=7'
    const { json } = await ask('GET', `/sync/memberships?${query}`)
    const { desiredSince, ...view } = VIEW
    expect(json.items).toEqual([{ ...view, desiredSince: '2026-03-01T12:00:00.000Z' }])
    expect(json.pagination?.hasMore).toBe(true)
    const next = await ask('GET', `/sync/memberships?${query}&cursor=${json.pagination?.nextCursor}`)
    expect(next.json.pagination).toEqual({ nextCursor: null, hasMore: false })
    const filter = {
      environments: ['live', 'sandbox'],
      state: 'parked',
      target: 'discord:1:2',
      customerId: 'cus_1',
      limit: 7,
    }
    const after = { environment: 'live', target: 'discord:1:2', accountId: '42' }
    expect(asked).toEqual([filter, { ...filter, after }])
  })

  it.each([
    'state=odd',
    'limit=0',
    'limit=101',
    'cursor=odd',
    'target=',
    'state=due&state=due',
    'environment=test',
  ])('refuse memberships?%s', async (query) => {
    const { ask } = await openWithSync()
    expect(await ask('GET', `/sync/memberships?${query}`)).toMatchObject({
      status: 400,
      json: { code: 'invalid_request', errors: [{ path: query.split('=')[0] }] },
    })
  })

  it('refuse the name of no role or group, where nothing is found by it', async () => {
    const { ask } = await openWithSync({ memberships: async () => ({ items: [], next: null }) })
    const listed = (query: string) => ask('GET', `/sync/memberships?${query}`)
    expect((await listed('target=discord:1:2')).status).toBe(200)
    const refused = [
      ['target=discord:1:3', 'must be one of discord:1:2, telegram:-100'],
      ['target=telegram:-100&environment=live', 'must be one of discord:1:2'],
      ['target=discord:1:2&environment=sandbox', 'must be one of telegram:-100'],
    ] as const
    for (const [query, message] of refused) {
      expect(await listed(query)).toMatchObject({
        status: 400,
        json: { errors: [{ path: 'target', message }] },
      })
    }
  })

  it.each([[{ target: 'discord:1:3' }, 'must be one of discord:1:2, telegram:-100']])(
    'refuse to try again %j, since no role or group is called so',
    async (retry, message) => {
      const { ask, ran } = await openWithSync()
      expect(await ask('POST', '/sync/run', { body: JSON.stringify({ retry }) })).toMatchObject({
        status: 400,
        json: { code: 'invalid_request', errors: [{ path: 'retry.target', message }] },
      })
      expect(ran).toEqual([])
    },
  )

  it('run with what is asked for, and nothing else', async () => {
    const { ask, ran } = await openWithSync()
    expect(await ask('POST', '/sync/run')).toEqual({ status: 200, json: { done: true, ...RAN } })
    const options = {
      confirm: 'abc',
      sweep: true,
      retry: { target: 'discord:1:2', customerId: 'cus_1' },
    }
    await ask('POST', '/sync/run', { body: JSON.stringify(options) })
    await ask('POST', '/sync/run?environment=live', { body: '{"retry":{}}' })
    const environments = ['live', 'sandbox']
    expect(ran).toEqual([
      { environments },
      { ...options, environments },
      { retry: {}, environments: ['live'] },
    ])
  })

  it('act in no environment that the key is not for', async () => {
    const { ask, ran } = await openWithSync()
    const run = (retry: object) => ask('POST', '/sync/run', { key: 'live', body: JSON.stringify({ retry }) })
    expect(await ask('POST', '/sync/run?environment=sandbox', { key: 'live' })).toMatchObject({ status: 403 })
    expect(await run({ target: 'telegram:-100' })).toMatchObject({
      status: 400,
      json: { errors: [{ path: 'retry.target', message: 'must be one of discord:1:2' }] },
    })
    expect(ran).toEqual([])
    expect(await ask('POST', '/sync/run', { key: 'live', body: '{"confirm":"abc"}' })).toMatchObject({
      status: 200,
    })
    expect(ran).toEqual([{ confirm: 'abc', environments: ['live'] }])
    expect((await ask('GET', '/sync/plan', { key: 'live' })).json).toMatchObject({ hash: 'live' })
    expect(await ask('POST', '/sync/pause', { key: 'live' })).toMatchObject({
      status: 403,
      json: { code: 'forbidden' },
    })
  })

  it.each(['/sync/pause', '/sync/resume'])('take nothing with POST %s', async (path) => {
    const { ask } = await openWithSync()
    expect(await ask('POST', path, { body: '{"environment":"live"}' })).toMatchObject({ status: 400 })
    expect(await ask('POST', `${path}?environment=live`)).toMatchObject({ status: 400 })
    expect(await ask('POST', path, { body: '{}' })).toMatchObject({ status: 200 })
  })

  it('resume what a restore has paused, though nothing is configured', async () => {
    const state = await SYNC_OFF.status()
    const { ask } = await openWithSync({ ...SYNC_OFF, status: async () => ({ ...state, paused: true }) })
    expect(await ask('POST', '/sync/resume')).toEqual({ status: 200, json: { paused: false } })
  })

  it.each(['{"confirm":""}', '{"confrim":"abc"}', '{"retry":{"state":"due"}}', '{"retry":true}', '{', '[]'])(
    'refuse to run %s',
    async (body) => {
      const { ask, ran } = await openWithSync()
      expect(await ask('POST', '/sync/run', { body })).toMatchObject({
        status: 400,
        json: { code: 'invalid_request' },
      })
      expect(ran).toEqual([])
    },
  )

  it('refuse a confirmation of another plan', async () => {
    const { ask } = await openWithSync({
      run: async () => {
        throw new LatchkeyError('plan_changed', 'Another plan.')
      },
    })
    expect(await ask('POST', '/sync/run', { body: '{"confirm":"abc"}' })).toMatchObject({
      status: 409,
      json: { code: 'plan_changed' },
    })
  })

  it('answer a run that takes long before it is done, and log how it failed', async () => {
    let fail = (): void => {}
    const begun = new Promise<void>((resolve) => {
      fail = resolve
    })
    let isAsked = false
    const { ask, logged } = await openWithSync({
      run: async () => {
        isAsked = true
        await begun
        throw new Error('The database went away.')
      },
    })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: true })
    try {
      const answer = ask('POST', '/sync/run')
      await eventually(() => expect(isAsked).toBe(true))
      vi.advanceTimersByTime(20_000)
      expect(await answer).toEqual({ status: 202, json: { done: false } })
    } finally {
      vi.useRealTimers()
    }
    fail()
    await eventually(() => expect(logged.map(({ msg }) => msg)).toContain('a run of sync failed'))
  })

  it('pause and resume', async () => {
    const done: string[] = []
    const { ask } = await openWithSync({
      pause: async () => void done.push('pause'),
      resume: async () => void done.push('resume'),
    })
    expect(await ask('POST', '/sync/pause')).toEqual({ status: 200, json: { paused: true } })
    expect(await ask('POST', '/sync/resume')).toEqual({ status: 200, json: { paused: false } })
    expect(done).toEqual(['pause', 'resume'])
  })

  it('pause where there is only an outbound webhook', async () => {
    const state = await SYNC_OFF.status()
    const webhook = { origin: 'https://app.example', messages: [] }
    const { ask } = await openWithSync({ ...SYNC_OFF, status: async () => ({ ...state, webhook }) })
    expect(await ask('POST', '/sync/pause')).toEqual({ status: 200, json: { paused: true } })
  })

  it('tell what a check found', async () => {
    const { ask } = await openWithSync()
    expect(await ask('GET', '/sync/check')).toEqual({
      status: 200,
      json: { ok: false, findings: [{ about: 'discord', ok: false, message: 'The token is not valid.' }] },
    })
  })
})
