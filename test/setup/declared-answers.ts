/* Sees that every answer which a test gets from the daemon in its process is one that the route declares. */

import { OutgoingMessage, ServerResponse } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import { afterEach, expect } from 'vitest'
import { z } from 'zod'
import { patternOf } from '../../src/handlers/mount.js'
import { errorsOf, methodsOf } from '../../src/handlers/route.js'
import { ROUTES } from '../../src/handlers/routes.js'

/** Test files share a process: what is wrong is kept for the test that made it so, and nothing is wrapped twice. */
const shared = globalThis as { wrongAnswers?: string[] }

if (shared.wrongAnswers === undefined) {
  shared.wrongAnswers = []
  const sent = new WeakMap<OutgoingMessage, Buffer[]>()
  const collect = (res: OutgoingMessage, chunk: unknown): Buffer[] => {
    const chunks = sent.get(res) ?? []
    if (typeof chunk === 'string' || chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk))
    sent.set(res, chunks)
    return chunks
  }
  const { write, end } = OutgoingMessage.prototype
  OutgoingMessage.prototype.write = function (this: OutgoingMessage, ...args: unknown[]) {
    if (this instanceof ServerResponse) collect(this, args[0])
    return Reflect.apply(write, this, args)
  }
  OutgoingMessage.prototype.end = function (this: OutgoingMessage, ...args: unknown[]) {
    if (this instanceof ServerResponse) {
      const wrong = wrongIn(this, Buffer.concat(collect(this, args[0])).toString('utf8'))
      if (wrong !== null) shared.wrongAnswers?.push(`${this.req.method} ${this.req.url}: ${wrong}`)
    }
    return Reflect.apply(end, this, args)
  }
}

afterEach(() => {
  expect(shared.wrongAnswers?.splice(0)).toEqual([])
})

/** Null: nothing, or it is not of a route of the daemon. */
function wrongIn(res: ServerResponse, text: string): string | null {
  const { method = '', url = '' } = res.req
  const [path = ''] = url.replace(/^http:\/\/[^/]*/, '').split('?')
  const route = ROUTES.find((one) => methodsOf(one).includes(method) && patternOf(one.path).test(path))
  // All of ours have this header, and what stands for a platform or a receiver in tests has not.
  if (route === undefined || res.getHeader('x-content-type-options') !== 'nosniff') return null
  const { statusCode: status } = res
  if (status === 304) return route.tagged || typeof route.answer === 'string' ? null : 'it cannot be kept'
  // A listener may serve some routes only, and what is a bug of a test's own is none of the route's.
  if (status >= 400) return wrongProblem(text, [...errorsOf(route), 'route_not_found', 'internal_error'])
  const declared = [route.status ?? 200, ...(route.acceptedAt === undefined ? [] : [202])]
  if (!declared.includes(status)) return `${status} is none of ${declared.join(', ')}`
  return typeof route.answer === 'string' ? null : wrongJson(text, route.answer)
}

function wrongProblem(text: string, codes: readonly string[]): string | null {
  const { code } = JSON.parse(text) as { readonly code: string }
  return codes.includes(code) ? null : `${code} is none of ${codes.join(', ')}`
}

function wrongJson(text: string, schema: z.ZodType): string | null {
  const json: unknown = JSON.parse(text)
  const parsed = schema.safeParse(json)
  if (!parsed.success) return `${z.prettifyError(parsed.error)} in ${text}`
  // A field that the schema does not name would be left out, and an instant in another form written in its own.
  return isDeepStrictEqual(z.encode(schema, parsed.data), json) ? null : `more than is declared, in ${text}`
}
