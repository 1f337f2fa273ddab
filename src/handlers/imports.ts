import type { IncomingMessage } from 'node:http'
import { LatchkeyError } from '../errors.js'
import type { ImportRules, LineOutcome } from '../history/import.js'
import type { Environment } from '../provider/event.js'
import type { Authenticate } from './authenticate.js'
import { readBody } from './body.js'
import { invalidParameter, readParameter, readQuery, shownEnvironments } from './query.js'
import { requireMethod } from './raw-route.js'
import type { RawHandler } from './route.js'
import { sendJson } from './send.js'

/** Of one request. So many are checked in some ten milliseconds, for which nobody else is answered. */
export const MAX_IMPORT_BYTES = 2 * 1024 * 1024
/** Fewer than one transaction takes. */
export const MAX_IMPORT_LINES = 200
export const LINES_TYPE = 'application/x-ndjson'
const PARAMETERS = ['environment', 'withManual', 'dryRun'] as const

export interface ImportsDeps {
  readonly authenticate: Authenticate
  readonly environments: () => readonly Environment[]
  /** What became of each line, in their order; a dry run stores none. */
  readonly importLines: (
    lines: readonly string[],
    rules: ImportRules & { readonly dryRun: boolean },
  ) => Promise<readonly LineOutcome[]>
}

/** What became of each line, as it goes over the wire. */
export interface ImportJson {
  readonly results: readonly LineOutcome[]
}

/** POST /imports: imports some lines of an export, and answers in their order what became of each. */
export function postImport({ authenticate, environments, importLines }: ImportsDeps): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'POST')
    const key = authenticate(req, 'admin')
    const query = readQuery(req, PARAMETERS)
    const rules = {
      // Each line says by its endpoint where it belongs.
      environments: shownEnvironments(query, environments(), key),
      withManual: readFlag(query, 'withManual'),
      dryRun: readFlag(query, 'dryRun'),
    }
    requireLines(req)
    const lines = linesIn(await readBody(req, MAX_IMPORT_BYTES))
    if (lines.length > MAX_IMPORT_LINES) throw tooManyLines()
    sendJson(res, 200, { results: await importLines(lines, rules) } satisfies ImportJson)
  }
}

function readFlag(query: URLSearchParams, name: string): boolean {
  const value = readParameter(query, name) ?? 'false'
  if (value === 'true' || value === 'false') return value === 'true'
  throw invalidParameter(name, 'is neither "true" nor "false"')
}

/** So that no page in a browser can have lines sent unasked. */
function requireLines(req: IncomingMessage): void {
  const [mediaType = ''] = (req.headers['content-type'] ?? '').split(';')
  if (mediaType.trim().toLowerCase() === LINES_TYPE) return
  throw new LatchkeyError('media_type_not_supported', `The body must be lines, sent as ${LINES_TYPE}.`)
}

function linesIn(body: Buffer): readonly string[] {
  return body
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '')
}

function tooManyLines(): LatchkeyError {
  const issues = [{ path: '', message: `has more than ${MAX_IMPORT_LINES} lines` }]
  return new LatchkeyError('invalid_request', 'The body is not valid.', { issues })
}
