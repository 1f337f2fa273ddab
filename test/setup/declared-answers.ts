/* Sees that every answer which a test gets from the daemon in its process is one that openapi.json describes. */

import { readFileSync } from 'node:fs'
import { OutgoingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterEach, expect } from 'vitest'
import type { ApiDocument, JsonSchema, Response } from '../../scripts/openapi/api-document.js'

/** Test files share a process: what is wrong is kept for the test that made it so, and nothing is wrapped twice. */
const shared = globalThis as { wrongAnswers?: string[] }

if (shared.wrongAnswers === undefined) {
  shared.wrongAnswers = []
  const wrongIn = createCheck()
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

/** Returns what is wrong with an answer; null: nothing, or it is not of a route of the daemon. */
function createCheck(): (res: ServerResponse, text: string) => string | null {
  const file = readFileSync(join(import.meta.dirname, '..', '..', 'openapi.json'), 'utf8')
  const document = JSON.parse(file, (_, value: JsonSchema | null) => {
    // Clients accept further fields; the daemon sends none. The code of a problem is described apart from the rest.
    const names = Object.keys(value?.properties ?? {})
    return names.length === 0 || names.join() === 'code' ? value : { additionalProperties: false, ...value }
  }) as ApiDocument
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  // The form that all instants in answers have.
  ajv.addFormat(
    'date-time',
    (text) => !Number.isNaN(Date.parse(text)) && new Date(text).toISOString() === text,
  )
  ajv.addSchema(document, 'api')
  const paths = Object.entries(document.paths).map(([path, methods]) => ({
    pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
    methods,
    pointer: `api#/paths/${path.replaceAll('/', '~1')}`,
  }))

  return (res, text) => {
    // All of ours have this header, and what stands for a platform or a receiver in tests has not.
    if (!/^x-content-type-options: nosniff/im.test(headOf(res))) return null
    const [target = ''] = (res.req.url ?? '').replace(/^http:\/\/[^/]*/, '').split('?')
    const method = res.req.method?.toLowerCase().replace('head', 'get') ?? ''
    const found = paths.find(({ pattern, methods }) => pattern.test(target) && methods[method] !== undefined)
    const operation = found?.methods[method]
    if (found === undefined || operation === undefined) return null
    const { statusCode: status } = res
    // A listener may serve some routes only, and some routes take no HEAD.
    if (status === 404 || status === 405) {
      const { code } = JSON.parse(text) as { readonly code: string }
      if (code === 'route_not_found' || code === 'method_not_allowed') return null
    }
    const described = operation.responses[status]
    if (described === undefined) return `${status} is not described`
    const ref = '$ref' in described ? described.$ref : null
    const response =
      ref === null ? (described as Response) : document.components.responses[ref.split('/').at(-1) ?? '']
    const missing = Object.keys(response?.headers ?? {}).filter(
      (name) => !new RegExp(`^${name}: `, 'im').test(headOf(res)),
    )
    if (missing.length > 0) return `${status} without ${missing.join(', ')}`
    const [type] = Object.keys(response?.content ?? {})
    if (type === undefined || !type.endsWith('json')) return null
    const json: unknown = JSON.parse(text)
    const place = ref === null ? `${found.pointer}/${method}/responses/${status}` : `api${ref}`
    const validate = ajv.getSchema(`${place}/content/${type.replaceAll('/', '~1')}/schema`)
    return validate?.(json) ? null : `${ajv.errorsText(validate?.errors)} in ${text}`
  }
}

/** The status line and headers as sent. */
function headOf(res: ServerResponse): string {
  return (res as ServerResponse & { readonly _header: string | null })._header ?? ''
}
