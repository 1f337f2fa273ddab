/* A world from a seed: the payments service, the daemon or daemons, and those who live with both. */

import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { EXAMPLE_POLICY } from '../../src/config/policy.js'
import { GUILD_ID } from '../platforms/discord-ids.js'
import { createFolder } from '../setup/create-folder.js'
import type { AtEnd } from '../world.js'
import type { Probe } from './checks/audit.js'
import { type Chance, chanceOf, mixed } from './machine/chance.js'
import { restartTime, until } from './machine/time.js'
import { restartTrace } from './machine/trace.js'
import { type SimulatedApp, startApp } from './parts/apps.js'
import { type Communities, GROUP_ID, ROLES, startCommunities, TOKENS } from './parts/communities.js'
import type { Daemon, DaemonOptions, LogLine } from './parts/daemon.js'
import { LIVE_HOST, LIVE_SECRET, type LiveSales, noSales } from './parts/live.js'
import { type ByHand, nothingByHand } from './parts/operator.js'
import { RECEIVER_SECRET, type SimulatedReceiver, startReceiver } from './parts/receivers.js'
import { type ServiceOptions, type SimulatedService, startSimulatedService } from './parts/service.js'

export const OPERATOR_KEY = 'lk_simulated_operator'
const APP_KEYS = { shop: 'lk_simulated_shop', blog: 'lk_simulated_blog' } as const
const SECRETS = { v3: 'whsec_simulated_current', v2: 'whsec_simulated_legacy' } as const
export const MINUTE_MS = 60_000
/** There are so few people that the percentage never allows more. */
export const REMOVALS_AT_MOST = 2

const keyEntry = (name: string, key: string, more: object) => ({
  name,
  hash: `sha256:${createHash('sha256').update(key).digest('hex')}`,
  ...more,
})

/** What is wrong: a promise was broken, or something happened that never may. */
export class BrokenPromise extends Error {
  readonly promise: string

  constructor(promise: string, what: string) {
    super(`${promise}: ${what}`)
    this.promise = promise
    this.name = 'BrokenPromise'
  }
}

/** What a world is built on. */
export interface Ground {
  /** Where the daemon is asked, or either of two. */
  readonly url: string
  readonly serviceOptions: ServiceOptions
  startDaemon(options: DaemonOptions): Promise<Daemon>
  /** Time passes until then, and the service has begun what fell due. @param at since the story began */
  reach(service: SimulatedService, at: number): Promise<void>
  /** The service has done all that fell due, whatever held it back. Nothing holds back more any more. */
  catchUp(service: SimulatedService): Promise<void>
  /** Whether an answer may have changes beyond its cursor: those of writers beside one that has not ended yet. */
  readonly mayRunAhead: boolean
  /** Which errors a daemon may log, beside those for which each world gives it reason. */
  readonly expectedErrors: readonly RegExp[]
  /** Takes what ends it. */
  readonly atEnd: AtEnd
  /** Ends all that was begun in it. */
  end(): Promise<void>
}

export interface World {
  readonly ground: Ground
  /** Where the daemon is asked, or either of two. */
  readonly url: string
  readonly daemon: Daemon
  /** What the steps have begun. */
  readonly begun: Promise<unknown>[]
  readonly service: SimulatedService
  readonly settings: Settings
  readonly byHand: ByHand
  /** Whether the daemon erases whom the service has deleted. */
  readonly erasesDeleted: boolean
  readonly live: LiveSales
  readonly communities: Communities
  readonly receivers: readonly SimulatedReceiver[]
  readonly apps: readonly SimulatedApp[]
  /** What was answered about instants, to be asked again. */
  readonly probes: Probe[]
  /** What must never happen, as it is found. */
  readonly broken: BrokenPromise[]
  /** Asks the daemon as its operator. Status 0: it could not be reached. */
  operate(
    words: string,
    body?: unknown,
    headers?: object,
  ): Promise<{ readonly status: number; readonly json: Json }>
  download(path: string): Promise<{ readonly status: number; readonly text: string }>
  upload(path: string, text: string): Promise<{ readonly status: number; readonly text: string }>
  end(): Promise<void>
}

// biome-ignore lint/suspicious/noExplicitAny: answers are looked at by what each step expects of them.
export type Json = any

/** What reloads change. */
export interface Settings {
  isTeamSilver: boolean
  /** So that many lose gold at once. Never with the other: some product must open gold. */
  isProSilver: boolean
  /** The receiver that gets nothing; null: each gets its messages. */
  disabled: string | null
  hasNextSecret: boolean
  hasNextKey: boolean
  /** How the policy differs from the one that the truth goes by; null: it does not. */
  policy: object | null
}

const USUAL: Settings = {
  ...{
    isTeamSilver: false,
    isProSilver: false,
    disabled: null,
    hasNextSecret: false,
    hasNextKey: false,
    policy: null,
  },
}

export async function createWorld(
  seed: number,
  heard: ((line: string) => void) | null,
  ground: Ground,
): Promise<World> {
  const { url } = ground
  restartTime()
  restartTrace(heard)
  const folder = createFolder()
  const settings = { ...USUAL }
  const broken: BrokenPromise[] = []
  const onLog = ({ level, msg, ...fields }: LogLine): void => {
    if (level !== 'error' && level !== 'fatal') return
    if (
      [...EXPECTED_ERRORS, ...ground.expectedErrors].some((one) =>
        one.test(`${msg} ${JSON.stringify(fields)}`),
      )
    )
      return
    broken.push(new BrokenPromise('nothing unexpected is logged', `${msg} ${JSON.stringify(fields)}`))
  }
  const report = (error: unknown): void =>
    void broken.push(
      new BrokenPromise('nothing fails', error instanceof Error ? `${error.stack}` : String(error)),
    )
  const endpoints = [
    { url: `${url}/webhooks/sandbox`, secret: SECRETS.v3, generation: 'v3' },
    { url: `${url}/webhooks/sandbox-legacy`, secret: SECRETS.v2, generation: 'v2' },
  ] as const
  const service = await until(
    'the start of the service',
    startSimulatedService('sandbox', seed, { ...ground.serviceOptions, endpoints }, report),
    MINUTE_MS,
  )
  const communities = await until('the start of the platforms', startCommunities(ground.atEnd), MINUTE_MS)
  const chances = chanceOf(mixed(seed, 4))
  const receivers = [
    await until('a receiver', startReceiver('app', chances, ground.atEnd), MINUTE_MS),
    await until('a receiver', startReceiver('crm', chances, ground.atEnd), MINUTE_MS),
  ]
  const choices = chanceOf(mixed(seed, 5))
  const erasesDeleted = choices.is(0.3)
  const chosen = { erasure: { onCustomerDeleted: erasesDeleted }, ...choicesOf(choices) }
  const config = () => ({ ...configOf(settings, service, communities, receivers), ...chosen })
  const starting = ground.startDaemon({ folder, config, onLog, onFailure: report })
  const daemon = await until('the start of the daemon', starting, MINUTE_MS)
  const apps = [
    await until('an app', startApp('shop', url, APP_KEYS.shop, 1_000), MINUTE_MS),
    await until('an app', startApp('blog', url, APP_KEYS.blog, 4), MINUTE_MS),
  ]
  const ask = async (path: string, init: RequestInit) => {
    try {
      const headers = { Authorization: `Bearer ${OPERATOR_KEY}`, ...init.headers }
      const response = await fetch(`${url}${path}`, { ...init, headers })
      const text = await response.text()
      if (path.includes('environment=sandbox') && text.includes(LIVE_HOST))
        broken.push(new BrokenPromise('environments never meet', `${path} ${text}`))
      if (response.status === 500) broken.push(new BrokenPromise('no request fails', `${path} ${text}`))
      return { status: response.status, text }
    } catch {
      return { status: 0, text: '' }
    }
  }

  return {
    ground,
    url,
    daemon,
    begun: [],
    service,
    settings,
    byHand: nothingByHand(),
    erasesDeleted,
    live: noSales(),
    communities,
    receivers,
    apps,
    probes: [],
    broken,
    async operate(words, body, more = {}) {
      const [method = '', path = ''] = words.split(' ')
      const { status, text } = await ask(path, {
        method,
        headers: { 'Content-Type': 'application/json', ...more },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      return { status, json: text === '' ? null : JSON.parse(text) }
    },
    download: (path) => ask(path, {}),
    upload: (path, body) =>
      ask(path, { method: 'POST', headers: { 'Content-Type': 'application/x-ndjson' }, body }),
    async end() {
      await until('the end of the daemon', daemon.end(), MINUTE_MS)
      for (const app of apps) app.end()
      await until('the end of the service', service.sandbox.stop(), MINUTE_MS)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** What some merchants have in their config, and others have not. */
function choicesOf(chance: Chance): object {
  return {
    ...(chance.is(0.4) && { retention: { bodiesAfter: '35d' } }),
    ...(chance.is(0.2) && { backfill: { schedule: '30 4 * * *' } }),
  }
}

function configOf(
  { isTeamSilver, isProSilver, disabled, hasNextSecret, hasNextKey, policy }: Settings,
  { sandbox, products }: SimulatedService,
  { discord, telegram }: Communities,
  receivers: readonly SimulatedReceiver[],
): object {
  const environment = 'sandbox'
  const role = (roleId: string) => ({ adapter: 'discord', guildId: GUILD_ID, roleId, environment })
  const gold = { features: ['export', 'api'], targets: [role(ROLES.gold)] }
  const silver = { features: ['export'], targets: [role(ROLES.silver)] }
  const grouped = {
    features: ['chat'],
    targets: [{ adapter: 'telegram', groupId: String(GROUP_ID), environment }],
  }
  const endpoint = (secret: string) => ({
    environment,
    secrets: [secret, ...(hasNextSecret ? ['whsec_simulated_next'] : [])],
  })
  return {
    server: { port: 4680 },
    endpoints: {
      sandbox: endpoint(SECRETS.v3),
      'sandbox-legacy': endpoint(SECRETS.v2),
      live: { environment: 'live', secrets: [LIVE_SECRET] },
    },
    api: {
      keys: [
        keyEntry('operator', OPERATOR_KEY, {
          scopes: ['read', 'write', 'events', 'metrics', 'admin'],
          environments: ['live', 'sandbox'],
        }),
        ...Object.entries({ ...APP_KEYS, ...(hasNextKey && { next: 'lk_simulated_next' }) }).map(
          ([name, key]) => keyEntry(name, key, { scopes: ['read'], environments: [environment] }),
        ),
      ],
    },
    policy: { ...EXAMPLE_POLICY, ...policy },
    products: {
      [products.pro]: isProSilver ? silver : gold,
      [products.yearly]: isProSilver ? silver : gold,
      [products.team]: isTeamSilver ? silver : { ...gold, targets: [...gold.targets, ...grouped.targets] },
      [products.basic]: silver,
      [products.course]: silver,
      [products.coins]: grouped,
      [products.book]: grouped,
    },
    sync: {
      discord: { botToken: TOKENS.discord, apiUrl: discord.url },
      telegram: { botToken: TOKENS.telegram, apiUrl: telegram.url },
      webhooks: Object.fromEntries(
        receivers.map(({ id, url }) => [
          id,
          {
            url,
            secret: RECEIVER_SECRET,
            environments: [environment],
            ...(id === 'crm' && { types: ['entitlement.granted', 'entitlement.revoked'] }),
            disabled: id === disabled,
          },
        ]),
      ),
      removals: { atMost: REMOVALS_AT_MOST, percent: 10 },
    },
    provider: { sandbox: { baseUrl: sandbox.url, apiKey: sandbox.key, legacy: true } },
    log: { level: 'info' },
  }
}

/** What a daemon says where the world gives it reason to. */
const EXPECTED_ERRORS: readonly RegExp[] = [
  // But no update of Telegram's is given up for it.
  /^(?!skipped).*database or disk is full/,
  // Later it is finished.
  /^could not finish an erasure .*"code":"not_stored"/,
  // What it says later of how that one ended.
  /^the scheduled backfill of \w+ failed.*The store cannot be written now/,
  // A later sweep asks Telegram about each customer all the same.
  /^skipped a Telegram update that failed repeatedly .*telegram_unreachable/,
]
