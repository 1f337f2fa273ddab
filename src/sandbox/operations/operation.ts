/* What an operation is: one row of the table from which routes, checks, paging and envelopes follow. */

import { z } from 'zod'
import type { ServiceCode } from '../../provider/service-codes.js'
import { refuse } from '../codes.js'
import type { Courier } from '../courier.js'
import type { Kind, Records } from '../model.js'
import type { World } from '../world.js'

export interface Engine {
  readonly world: World
  readonly courier: Courier
  /** Resolves once all that fell due up to that instant is done, and delivered or given up. */
  readonly advance: (to: number) => Promise<void>
  /** Where the sandbox is reached, without a slash at its end; known once it listens. */
  readonly baseUrl: () => string
  /** Hears of failures that are bugs. */
  readonly report: (error: unknown) => void
}

export interface Call<Input extends z.ZodType = z.ZodType> extends Engine {
  readonly input: z.output<Input>
  readonly params: Readonly<Record<string, string>>
  /** The first of the path's parameters; empty if it has none. */
  readonly id: string
}

export interface Operation<Input extends z.ZodType = z.ZodType> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  /** `open` needs no key, and has no envelope. */
  readonly generation: 'v3' | 'v2' | 'sandbox' | 'open'
  readonly status: number
  /** Which requests a key makes safe to repeat. */
  readonly idempotency: 'none' | 'v3' | 'v2'
  /** What it takes in its query, if it is a GET, else in its body. */
  readonly input: Input
  /** What is waited for first, outside of the act. */
  before?(call: Call<Input>): Promise<unknown>
  /** Does the work in one act, and answers. */
  run(call: Call<Input>): unknown
}

export const NOTHING = z.object({})

/** Declares an operation by its words, such as `POST /v3/products`. @param view shows what was done */
export function operation<Done, Input extends z.ZodType = typeof NOTHING>(
  words: string,
  facts: Partial<Operation<Input>>,
  work: (call: Call<Input>) => Done,
  view: (done: Done, world: World) => unknown = (done) => done,
): Operation {
  const [method, path = ''] = words.split(' ') as [Operation['method'], string]
  const generation = path.startsWith('/v3') ? 'v3' : path.startsWith('/api') ? 'v2' : 'sandbox'
  return {
    method,
    path,
    generation: path === '/health' ? 'open' : generation,
    status: 200,
    idempotency: method === 'POST' && generation !== 'v2' ? 'v3' : 'none',
    input: NOTHING,
    run: (call: Call<Input>) => view(work(call), call.world),
    ...facts,
  }
}

/** Declares what is done to the record that a path names. @param find finds it, or refuses */
export const actOn =
  <One>(find: (call: Call) => One) =>
  <Done, Input extends z.ZodType = typeof NOTHING>(
    words: string,
    facts: Partial<Operation<Input>>,
    work: (world: World, one: One, input: z.output<Input>) => Done,
    view?: (done: Done, world: World) => unknown,
  ): Operation =>
    operation(words, facts, (call) => work(call.world, find(call), call.input), view)

/** The same fields for an update, which needs none of them and must not bring in defaults. */
export function changesOf(schema: z.ZodObject): z.ZodObject {
  const bare = (field: unknown) => (field instanceof z.ZodDefault ? field.unwrap() : field) as z.ZodType
  const fields = Object.entries(schema.shape).map(([name, field]) => [name, bare(field).optional()] as const)
  return z.object(Object.fromEntries(fields))
}

export function found<K extends Kind>(world: World, kind: K, id: string, code: ServiceCode): Records[K] {
  if (id === '' || id.length > 255 || /\p{Cc}/u.test(id)) {
    refuse('INVALID_ID', 'The id is empty, too long, or has control characters.')
  }
  return world.find(kind, id) ?? refuse(code, `There is no ${kind} ${id}.`)
}

export function named<K extends Kind>(kind: K, code: ServiceCode): (call: Call) => Records[K] {
  return ({ world, id }) => found(world, kind, id, code)
}

/** A record with the fields that an update names. @throws {ServiceError} `MISSING_FIELD` if it names none */
export function updated<Record extends object>(record: Record, input: object): Record {
  const given = Object.entries(input).filter(([, value]) => value !== undefined)
  if (given.length === 0) refuse('MISSING_FIELD', 'Send at least one field to change.')
  return { ...record, ...Object.fromEntries(given) }
}
