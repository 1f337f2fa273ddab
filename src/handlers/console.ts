/* The operator's console: its page, sign-in, and the API under a session instead of a key. */

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import helmet from 'helmet'
import { z } from 'zod'
import { type ErrorCode, isLatchkeyError, LatchkeyError } from '../errors.js'
import { environment, instant } from './answers.js'
import { API_SCOPES, type ApiKey } from './api-key.js'
import type { Authenticate, createKeyring } from './authenticate.js'
import { readBody } from './body.js'
import { changeStreamRoute } from './change-stream.js'
import { createConsoleFiles } from './console/files.js'
import { createOrigin } from './console/origin.js'
import { createSessions, IDLE_MS, type Links, type Session } from './console/sessions.js'
import { methodNotAllowed } from './mount.js'
import type { ProductDeps } from './products.js'
import { pathOf, queryOf } from './query.js'
import { ADMIN_OF_BOTH, type MountDeps, type Route, route } from './route.js'
import { answerFailure, send } from './send.js'
import { factsOf } from './server.js'
import type { SyncQuestionDeps } from './sync/deps.js'

/** What the console shows beside data. */
export interface ConsoleRouteDeps extends ProductDeps, Pick<SyncQuestionDeps, 'sync'> {
  readonly version: string
  readonly links: Links
}

export const consoleSession = z.object({
  key: z.string(),
  scopes: z.array(z.enum(API_SCOPES)),
  environments: z.array(environment),
  /** When the key ends; null: never. */
  expiresAt: instant.nullable(),
  version: z.string(),
  endpoints: z.array(z.object({ name: z.string(), environment })),
  products: z.array(z.object({ id: z.string(), name: z.string().nullable(), features: z.array(z.string()) })),
  targets: z.array(z.string()),
})

export const consoleLink = z.object({ path: z.string(), expiresAt: instant })
export type ConsoleLinkJson = z.input<typeof consoleLink>

export const consoleRoutes: readonly Route<ConsoleRouteDeps>[] = [
  route('GET /console/session', {
    operationId: 'getConsoleSession',
    summary: 'What the key may do, and what is configured: what the console shows beside data.',
    scope: 'any',
    environments: 'shown',
    answer: consoleSession,
    async handle({ key, environments }, { version, endpoints, products, sync }: ConsoleRouteDeps) {
      return {
        key: key.name,
        scopes: key.scopes,
        environments: key.environments,
        expiresAt: key.expiresAt,
        version,
        endpoints: endpoints()
          .filter((one) => environments.includes(one.environment))
          .map(({ name, environment }) => ({ name, environment })),
        products: products().map(({ id, name, features }) => ({ id, name, features })),
        targets: await sync.targets(environments),
      }
    },
  }),
  route('POST /console/links', {
    operationId: 'createConsoleLink',
    summary: 'A link that opens the console signed in with this key: once, and within a minute.',
    ...ADMIN_OF_BOTH,
    status: 201,
    answer: consoleLink,
    handle({ key }, { links }: ConsoleRouteDeps) {
      const { token, expiresAt } = links.create(key)
      return { path: `/console/link?token=${token}`, expiresAt }
    },
  }),
]

const COOKIE = 'latchkey-console'
const PREFIX = '/console'
const API = `${PREFIX}/api`
/** A key has 46 characters. */
const MAX_FORM_BYTES = 8 * 1024
/** A view to go on to, as the page names it. */
const NEXT = /^\/[!-~]*$/

/** No script, style, picture or form but its own; in nobody's frame. */
const secureHeaders = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      connectSrc: ["'self'"],
      imgSrc: ["'self'", 'data:'],
      formAction: ["'self'"],
      frameAncestors: ["'none'"],
      baseUri: ["'none'"],
    },
  },
  xFrameOptions: { action: 'deny' },
  // By the default, `no-referrer`, a browser hides the Origin of a form, too.
  referrerPolicy: { policy: 'same-origin' },
})

export interface ConsoleDeps extends Pick<MountDeps, 'clock' | 'log'> {
  readonly trustProxy: number
  readonly keyring: ReturnType<typeof createKeyring>
  readonly apiKeys: () => readonly ApiKey[]
  readonly localKey: ApiKey
  readonly links: Links
  /** Seals the sessions; asked for once it is needed. Rejects with `store_unavailable`. */
  readonly secret: () => Promise<Buffer>
  /** Serves the API to requests that this lets in. Called at the first one: it costs memory. */
  readonly openApi: (authenticate: Authenticate) => RequestListener
}

/**
 * Answers requests for what is below `/console`, but for the routes of the table, and returns whether it does. Nothing
 * is loaded, nor is anything kept, before the first request.
 */
export function createConsole(deps: ConsoleDeps): (req: IncomingMessage, res: ServerResponse) => boolean {
  const files = createConsoleFiles()
  const origin = createOrigin(deps.trustProxy)
  const signIn = createSignIn(deps, origin)
  const api = createSessionApi(deps, signIn, origin)

  async function answer(req: IncomingMessage, res: ServerResponse, path: string): Promise<void> {
    origin.assertNamed(req)
    const { method = '' } = req
    const isReading = method === 'GET' || method === 'HEAD'
    if (path.startsWith(`${API}/`)) return api(req, res)
    secureHeaders(req, res, () => {})
    if (path === `${PREFIX}/session`) return signIn.change(req, res)
    if (!isReading) throw methodNotAllowed(res, 'GET, HEAD')
    if (path === `${PREFIX}/link`) return signIn.byLink(req, res)
    const asset = path.startsWith(`${PREFIX}/assets/`) ? path.slice(`${PREFIX}/assets/`.length) : null
    const isSent = await (asset === null ? files.sendPage(res) : files.sendAsset(res, asset))
    if (isSent) return
    const message =
      asset === null
        ? 'The console is not built: install the package again, or run `npm run console`.'
        : 'There is no such file: load the page again.'
    throw new LatchkeyError('route_not_found', message)
  }

  return (req, res) => {
    const path = pathOf(req.url ?? '')
    if (path !== PREFIX && !path.startsWith(`${PREFIX}/`)) return false
    if (isInTable(req.method, path)) return false
    factsOf(req).route = path.startsWith(`${PREFIX}/assets/`) ? `${PREFIX}/assets/:name` : PREFIX
    answer(req, res, path).catch((error: unknown) => answerFailure(res, error, deps.log))
    return true
  }
}

/** The sign-in and the sign-out share their path with a route. */
function isInTable(method: string | undefined, path: string): boolean {
  return (
    path === `${PREFIX}/links` || (path === `${PREFIX}/session` && method !== 'POST' && method !== 'DELETE')
  )
}

/** Begins and ends sessions. */
function createSignIn(deps: ConsoleDeps, { isSecure, assertOwn }: ReturnType<typeof createOrigin>) {
  const { keyring, apiKeys, localKey, clock, links, log } = deps
  let sessions: Promise<ReturnType<typeof createSessions>> | null = null
  const opened = () => {
    sessions ??= deps.secret().then(
      (secret) => createSessions({ secret, apiKeys, localKey, clock }),
      (error: unknown) => {
        sessions = null
        throw error
      },
    )
    return sessions
  }

  function setCookie(req: IncomingMessage, res: ServerResponse, value: string, maxAgeMs: number): void {
    const secure = isSecure(req) ? '; Secure' : ''
    const lasts = `Max-Age=${Math.floor(maxAgeMs / 1000)}`
    res.setHeader(
      'Set-Cookie',
      `${COOKIE}=${value}; Path=${PREFIX}; ${lasts}; HttpOnly; SameSite=Strict${secure}`,
    )
  }

  async function begin(req: IncomingMessage, res: ServerResponse, key: ApiKey, next = ''): Promise<void> {
    setCookie(req, res, (await opened()).cookieFor(key), IDLE_MS)
    log.info({ requestId: factsOf(req).id, keyName: key.name }, 'signed in to the console')
    redirect(res, viewAt(next))
  }

  async function find(req: IncomingMessage): Promise<Session | null> {
    const cookies = cookiesIn(req)
    if (cookies.length === 0) return null
    const { find } = await opened()
    for (const cookie of cookies) {
      const session = find(cookie)
      if (session !== null) return session
    }
    return null
  }

  /** A form of the page posts the key, so that no script ever has it. */
  async function signInByForm(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const form = new URLSearchParams((await readBody(req, MAX_FORM_BYTES)).toString('utf8'))
    const next = form.get('next') ?? ''
    try {
      await begin(req, res, keyring.exchange(req, form.get('key')?.trim() ?? ''), next)
    } catch (error) {
      if (!isShown(error) || !isNavigation(req)) throw error
      redirect(res, `${PREFIX}/sign-in?${new URLSearchParams({ problem: error.code, next })}`)
    }
  }

  return {
    find,
    /** Goes on for another eight hours. */
    async renew(req: IncomingMessage, res: ServerResponse, { key, id }: Session): Promise<void> {
      setCookie(req, res, (await opened()).cookieFor(key, id), IDLE_MS)
    },
    /** Signs in, or out. */
    async change(req: IncomingMessage, res: ServerResponse): Promise<void> {
      const { method } = req
      if (method !== 'POST' && method !== 'DELETE') throw methodNotAllowed(res, 'POST, DELETE')
      assertOwn(req)
      if (method === 'POST') return signInByForm(req, res)
      const session = await find(req)
      if (session !== null) (await opened()).end(session)
      setCookie(req, res, '', 0)
      send(
        res,
        200,
        { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' },
        '{"signedOut":true}',
      )
    },
    async byLink(req: IncomingMessage, res: ServerResponse): Promise<void> {
      // What only looks at a link, such as a chat that shows where it leads, must not use it up.
      if (req.method !== 'GET') throw methodNotAllowed(res, 'GET')
      const token = new URLSearchParams(queryOf(req)).get('token') ?? ''
      const key = links.take(token)
      if (key === null) return redirect(res, `${PREFIX}/sign-in?problem=link_used`)
      await begin(req, res, key)
    },
  }
}

/** Where to go after a sign-in: a view of the console and nothing else, so not out of it by `..` either. */
function viewAt(next: string): string {
  const { pathname, search } = new URL(NEXT.test(next) ? PREFIX + next : `${PREFIX}/`, 'http://localhost')
  return pathname.startsWith(`${PREFIX}/`) ? pathname + search : `${PREFIX}/`
}

/** What the sign-in page says in its own words. */
const SHOWN: readonly ErrorCode[] = ['unauthorized', 'key_expired', 'too_many_wrong_keys', 'rate_limited']
const isShown = (error: unknown): error is LatchkeyError =>
  isLatchkeyError(error) && SHOWN.includes(error.code)

/** Whether a browser shows the answer as a page. */
const isNavigation = ({ headers }: IncomingMessage): boolean => headers.accept?.includes('text/html') ?? false

function redirect(res: ServerResponse, to: string): void {
  send(res, 303, { Location: to, 'Cache-Control': 'no-store' }, '')
}

function cookiesIn({ headers }: IncomingMessage): readonly string[] {
  return (headers.cookie ?? '').split(';').flatMap((pair) => {
    const [name, value = ''] = pair.trim().split('=')
    return name === COOKIE && value !== '' ? [value] : []
  })
}

/** The page says so of what it asks for by itself while nobody touches it: that keeps no session alive. */
const UNATTENDED = 'x-console-unattended'

/** The API below `/console/api`: the same routes, with the rights of the key that the session began with. */
function createSessionApi(
  { keyring, openApi }: ConsoleDeps,
  signIn: ReturnType<typeof createSignIn>,
  { assertOwn }: ReturnType<typeof createOrigin>,
) {
  const keyOf = new WeakMap<IncomingMessage, ApiKey>()
  let opened: RequestListener | null = null
  const authenticate: Authenticate = (req, scope) => {
    const key = keyOf.get(req)
    if (key === undefined) throw sessionEnded()
    return keyring.admit(req, key, scope)
  }
  return async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const { method = '', url = '' } = req
    const site = req.headers['sec-fetch-site']
    // A browser sends no Origin with what it only reads.
    if (method !== 'GET' && method !== 'HEAD') assertOwn(req)
    else if (site !== undefined && site !== 'same-origin' && site !== 'none')
      throw new LatchkeyError('origin_refused', 'Open this from the console.')
    const session = await signIn.find(req)
    if (session === null) throw sessionEnded()
    req.url = url.slice(API.length)
    const isStream = pathOf(req.url) === changeStreamRoute.path
    keyOf.set(req, isStream ? endingWith(session) : session.key)
    if (session.isDue && !isStream && req.headers[UNATTENDED] === undefined)
      await signIn.renew(req, res, session)
    opened ??= openApi(authenticate)
    opened(req, res)
  }
}

/** A stream ends with the session, too; the browser goes on with one that was used meanwhile. */
function endingWith({ key, endsAt }: Session): ApiKey {
  return { ...key, expiresAt: Math.min(key.expiresAt ?? endsAt, endsAt) }
}

function sessionEnded(): LatchkeyError {
  return new LatchkeyError(
    'session_ended',
    'You are not signed in to the console, or no longer: sign in again.',
  )
}
