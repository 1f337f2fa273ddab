import type { IncomingMessage } from 'node:http'
import type { z } from 'zod'
import { type Issue, LatchkeyError } from '../errors.js'
import { MAX_BODY_BYTES, readBody } from './read-body.js'

/**
 * The body of a request, as its schema has it; an empty one is read as an empty object.
 * @throws LatchkeyError `invalid_request` with everything that is wrong; `body_too_large` and the like
 */
export async function readJson<Schema extends z.ZodType>(
  req: IncomingMessage,
  schema: Schema,
): Promise<z.infer<Schema>> {
  const parsed = schema.safeParse(parseJson(await readBody(req, MAX_BODY_BYTES)))
  if (parsed.success) return parsed.data
  throw invalidBody(
    parsed.error.issues.map(({ path, message }) => ({ path: path.map(String).join('.'), message })),
  )
}

function parseJson(body: Buffer): unknown {
  if (body.length === 0) return {}
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    throw invalidBody([{ path: '', message: 'is not JSON' }])
  }
}

/** The failure of a request whose body can't be used. */
export function invalidBody(issues: readonly Issue[]): LatchkeyError {
  return new LatchkeyError('invalid_request', 'The body is not valid.', { issues })
}
