/* The API of the daemon, under the session of this browser. */

import { signal } from '@preact/signals'
import createClient from 'openapi-fetch'
import type { components, paths } from '../../openapi.js'
import { now } from './now.js'

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

/**
 * `api.GET('/customers', { params: { query: { query: 'cus_' } }, signal })`: typed by the OpenAPI document. Read its
 * answer with `answerOf`.
 */
export const api = createClient<paths>({ baseUrl: API_BASE })
api.use({
  onRequest({ request }) {
    if (now() - touchedAt > UNATTENDED_AFTER_MS) request.headers.set('x-console-unattended', '1')
    // Answers hold personal data, which should not stay on this machine.
    return new Request(request, { cache: 'no-store' })
  },
})

/** A refusal, as the API words it, or the failure to reach it. */
export class Problem extends Error {
  readonly code: string
  readonly status: number
  readonly requestId: string | null
  readonly issues: readonly { readonly path: string; readonly message: string }[]

  constructor(status: number, body: Partial<Schemas['Problem']>) {
    super(body.detail ?? `The daemon answered ${status}.`)
    this.code = body.code ?? 'unreadable'
    this.status = status
    this.requestId = body.requestId ?? null
    this.issues = body.errors ?? []
  }
}

/** Whether the session has ended: its key was revoked, or nobody used it for eight hours. */
export const hasEnded = signal(false)

/** The answer of a call. @throws Problem */
export async function answerOf<Answer>(
  call: Promise<{ readonly data?: Answer; readonly error?: unknown; readonly response: Response }>,
): Promise<Answer> {
  const { data, error, response } = await call.catch((cause: unknown) => {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause
    throw new Problem(0, { code: 'unreachable', detail: 'The daemon does not answer.' })
  })
  if (response.ok && data !== undefined) return data
  const problem = new Problem(response.status, Object(error) as Partial<Schemas['Problem']>)
  if (problem.code === 'session_ended') hasEnded.value = true
  throw problem
}

/** Signs out, here and in every other tab. */
export async function signOut(): Promise<void> {
  const { ok, status } = await fetch('/console/session', { method: 'DELETE' })
  if (!ok) throw new Problem(status, {})
}
