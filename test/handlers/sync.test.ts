import { describe, expect, it, vi } from 'vitest'
import { LatchkeyError } from '../../src/errors.js'
import type { SyncControl } from '../../src/handlers/sync/deps.js'
import type { MembershipQuery, MembershipView } from '../../src/sync/plan.js'
import type { RunOptions } from '../../src/sync/run.js'
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
const TARGETS = { live: VIEW.target, sandbox: 'telegram:-100' } as const
const RAN = { ...(await SYNC_OFF.run({ environments: ['live'] })), given: 1 }

interface Answered {
  readonly targets?: readonly { readonly environment: string }[]
  readonly calls?: readonly { readonly environment: string }[]
  readonly items?: readonly unknown[]
  readonly pagination?: { readonly nextCursor: string | null; readonly hasMore: boolean }
}

const STATUS: Awaited<ReturnType<SyncControl['status']>> = {
  paused: false,
  platforms: [
    { platform: 'discord', state: 'limited', until: NOW, reason: { code: 'limited', message: 'Slow down.' } },
  ],
  targets: (['live', 'sandbox'] as const).map((environment) => ({
    environment,
    target: TARGETS[environment],
    state: 'stopped',
    until: NOW,
    reason: { code: 'token_refused', message: 'Set the token.' },
    memberships: COUNTS,
  })),
  unconfirmed: 0,
  sweptAt: NOW,
  checked: { at: NOW, problems: [{ about: 'discord', isFine: false, message: 'Invite the bot.' }] },
  webhooks: [
    {
      id: 'crm',
      origin: 'https://app.example',
      disabled: false,
      waiting: 3,
      oldestWaitingAt: NOW,
      failed: 2,
      lastDeliveredAt: null,
      lastError: { at: NOW, reason: 'answered 410' },
    },
  ],
  unreachable: [{ platform: 'discord', since: NOW, reason: 'Discord could not be reached.' }],
  leads: true,
}

/** The same, as JSON has it. */
const withTimes = (value: unknown) =>
  JSON.parse(JSON.stringify(value), (_, one) => (one === NOW ? new Date(NOW).toISOString() : one))

/** A front whose sync has a live and a sandbox target; `root` may ask about both, `live` about one. */
async function openWithSync(overrides: Partial<SyncControl> = {}) {
  const asked: MembershipQuery[] = []
  const ran: RunOptions[] = []
  const { target, accountId, customerId } = VIEW
  const call = { target, accountId, customerId, action: 'take', needsConfirmation: true } as const
  const front = await openFront({
    apiKeys: () => [
      apiKey('root', { scopes: ['admin'], environments: ['live', 'sandbox'] }),
      apiKey('live', { scopes: ['admin'] }),
    ],
    sync: {
      ...SYNC_OFF,
      targets: async (environments = ['live', 'sandbox']) => environments.map((name) => TARGETS[name]),
      status: async (environments = ['live', 'sandbox']) => ({
        ...STATUS,
        targets: STATUS.targets.filter(({ environment }) => environments.includes(environment)),
      }),
      memberships: async (query) => {
        asked.push(query)
        return { items: [VIEW], next: query.after === undefined ? VIEW : null }
      },
      plan: async (environments = ['live', 'sandbox']) => ({
        paused: true,
        hash: environments.join(' and '),
        calls: environments.map((environment) => ({ ...call, environment })),
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
  ['GET', '/sync/memberships'],
  ['GET', '/sync/plan'],
  ['GET', '/sync/check'],
  ['POST', '/sync/run'],
  ['POST', '/sync/pause'],
  ['POST', '/sync/resume'],
] as const

describe('the routes about what follows access', () => {
  it.each(ROUTES)('%s %s answers where nothing is configured, too', async (method, path) => {
    const { ask } = await openWithSync(SYNC_OFF)
    expect((await ask(method, path)).status).toBe(200)
  })

  it('show the state of platforms, targets and the outbound webhooks, also where nothing is configured', async () => {
    const { ask } = await openWithSync()
    const problems = [{ about: 'discord', message: 'Invite the bot.' }]
    const told = { ...STATUS, checked: { at: NOW, problems } }
    expect((await ask('GET', '/sync')).json).toEqual(withTimes(told))
    const off = await openWithSync(SYNC_OFF)
    expect(await off.ask('GET', '/sync')).toEqual({ status: 200, json: await SYNC_OFF.status() })
  })

  it.each(['/sync', '/sync/plan'])(
    '%s shows the environment that is named, or those of the key',
    async (path) => {
      const { ask } = await openWithSync()
      const shown = async (query: string, key: string) => {
        const { json } = await ask('GET', `${path}${query}`, { key })
        return (json.targets ?? json.calls ?? []).map(({ environment }) => environment)
      }
      expect(await shown('', 'root')).toEqual(['live', 'sandbox'])
      expect(await shown('?environment=sandbox', 'root')).toEqual(['sandbox'])
      expect(await shown('', 'live')).toEqual(['live'])
    },
  )

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

  it('refuse to try again what no role or group is called', async () => {
    const { ask, ran } = await openWithSync()
    const message = 'must be one of discord:1:2, telegram:-100'
    expect(await ask('POST', '/sync/run', { body: '{"retry":{"target":"discord:1:3"}}' })).toMatchObject({
      status: 400,
      json: { code: 'invalid_request', errors: [{ path: 'retry.target', message }] },
    })
    expect(ran).toEqual([])
  })

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
    const run = (body: object) => ask('POST', '/sync/run', { key: 'live', body: JSON.stringify(body) })
    expect(await run({ retry: { target: 'telegram:-100' } })).toMatchObject({
      status: 400,
      json: { errors: [{ path: 'retry.target', message: 'must be one of discord:1:2' }] },
    })
    expect(ran).toEqual([])
    expect((await run({ confirm: 'abc' })).status).toBe(200)
    expect(ran).toEqual([{ confirm: 'abc', environments: ['live'] }])
    expect((await ask('GET', '/sync/plan', { key: 'live' })).json).toMatchObject({ hash: 'live' })
  })

  it('resume what a restore has paused, though nothing is configured', async () => {
    const state = await SYNC_OFF.status()
    const { ask } = await openWithSync({ ...SYNC_OFF, status: async () => ({ ...state, paused: true }) })
    expect(await ask('POST', '/sync/resume')).toEqual({ status: 200, json: { paused: false } })
  })

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

  it.each([false, true])(
    'answer a run that takes long before it is done, and log how it failed, but not if a stop overtook it: %s',
    async (isStopping) => {
      const { promise: failing, reject: fail } = Promise.withResolvers<never>()
      let isAsked = false
      const { ask, logged } = await openWithSync({
        run: () => {
          isAsked = true
          return failing
        },
        isStopping: () => isStopping,
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
      fail(new Error('The database went away.'))
      await expect(failing).rejects.toThrow()
      expect(logged.map(({ msg }) => msg).includes('a run of sync failed')).toBe(!isStopping)
    },
  )

  it('pause where there is only an outbound webhook', async () => {
    const state = await SYNC_OFF.status()
    const { webhooks } = STATUS
    const { ask } = await openWithSync({ ...SYNC_OFF, status: async () => ({ ...state, webhooks }) })
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
