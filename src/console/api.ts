/* The API of the daemon, under the session of this browser. */

import { signal } from '@preact/signals'
import createClient from 'openapi-fetch'
import type { components, paths } from '../../openapi.js'
import { now } from './now.js'
import type { Parameters } from './router.js'

export type Schemas = components['schemas']
export type Environment = Schemas['Environment']
export type Scope = Schemas['ConsoleSession']['scopes'][number]

/** From then on nobody is taken to be there: what the page asks for by itself keeps no session alive. */
const UNATTENDED_AFTER_MS = 60_000
let touchedAt = now()
const touched = (): void => {
  touchedAt = now()
}
for (const kind of ['pointerdown', 'keydown', 'wheel'])
  window.addEventListener(kind, touched, { passive: true, capture: true })

export const API_BASE = '/console/api'
const client = createClient<paths>({ baseUrl: API_BASE })
client.use({
  onRequest({ request }) {
    if (now() - touchedAt > UNATTENDED_AFTER_MS) request.headers.set('x-console-unattended', '1')
    // Answers hold personal data, which should not stay on this machine.
    return new Request(request, { cache: 'no-store' })
  },
})

/** A refusal, as the API words it, or the failure to reach it. */
export class Problem extends Error {
  readonly code: string
  readonly requestId: string | null
  readonly issues: readonly { readonly path: string; readonly message: string }[]

  constructor(code: string, message: string, body: Partial<Schemas['Problem']> = {}) {
    super(body.detail ?? message)
    this.code = body.code ?? code
    this.requestId = body.requestId ?? null
    this.issues = body.errors ?? []
  }
}

/** Anything else than a refusal is a bug, which is shown as one. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error
  return new Problem('bug', error instanceof Error ? error.message : String(error))
}

/** Whether the session has ended: its key was revoked, or nobody used it for eight hours. */
export const hasEnded = signal(false)

/** Grows when something may have changed: what pages show is then asked for again. */
export const revision = signal(0)
export const refresh = (): void => {
  revision.value += 1
}

export type Path = keyof paths
type Method = 'get' | 'post' | 'put' | 'delete'
type Json<Content> = Content extends { content: { 'application/json': infer Body } } ? Body : never
type At<Of, Name> = Of extends unknown ? Of[Name & keyof Of] : never
export type AnswerOf<P extends Path, M extends Method = 'get'> = Json<
  At<At<At<paths[P], M>, 'responses'>, 200 | 201 | 202>
>
type BodyOf<P extends Path, M extends Method> = Json<At<At<paths[P], M>, 'requestBody'>>

type Answered = { readonly data?: unknown; readonly error?: unknown; readonly response: Response }
const request = client.request as (method: string, path: Path, sent: object) => Promise<Answered>

async function ask(method: Method, path: Path, given: Parameters, sent: object): Promise<unknown> {
  const all = Object.entries(given).filter(([, value]) => (value ?? null) !== null)
  const isId = ([name]: readonly [string, unknown]): boolean => path.includes(`{${name}}`)
  const ids = all.filter(isId)
  for (const [, id] of ids)
    if (id === '.' || id === '..')
      throw new Problem('bad_id', `No browser can ask for the id “${id}”: it takes it for a way up.`)
  const params = { path: Object.fromEntries(ids), query: Object.fromEntries(all.filter((one) => !isId(one))) }
  const { data, error, response } = await request(method, path, { params, ...sent }).catch((cause) => {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause
    throw new Problem('unreachable', 'The daemon does not answer.')
  })
  if (response.ok && data !== undefined) return data
  const problem = new Problem('unreadable', `The daemon answered ${response.status}.`, Object(error))
  if (problem.code === 'session_ended') hasEnded.value = true
  throw problem
}

/** @param given the ids in the path, and the query; null and undefined are left out. @throws Problem */
export const get = <P extends Path>(path: P, given: Parameters = {}, signal?: AbortSignal) =>
  ask('get', path, given, { signal }) as Promise<AnswerOf<P>>

/** The bytes of an answer. @param given of `get`. @throws Problem */
export async function bytesOf(path: Path, given: Parameters, signal: AbortSignal) {
  return new Uint8Array((await ask('get', path, given, { signal, parseAs: 'arrayBuffer' })) as ArrayBuffer)
}

/**
 * Changes something. Pages show what is so after it, or after a refusal: what they showed may no longer have been so.
 * @param given of `get`. @throws Problem
 */
export async function send<P extends Path, M extends Exclude<Method, 'get'>>(
  method: M,
  path: P,
  given: Parameters = {},
  body?: BodyOf<P, M>,
  signal?: AbortSignal,
) {
  try {
    return (await ask(method, path, given, { body, signal })) as AnswerOf<P, M>
  } finally {
    if (!given.dryRun && !Object(body).dryRun) refresh()
  }
}
