import type { Finding } from '../doctor/finding.js'
import type { Authenticate } from './authenticate.js'
import { invalidParameter, readParameter, readQuery, requireBoth } from './query.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendJson } from './send.js'

export interface DoctorDeps {
  readonly authenticate: Authenticate
  readonly examine: (thorough: boolean) => Promise<readonly Finding[]>
}

export interface DoctorJson {
  /** Nothing fails. */
  readonly ok: boolean
  readonly findings: readonly Finding[]
}

/** GET /doctor: everything that was looked at, and what to do about it. `?thorough=true` reads every page and body. */
export function getDoctor({ authenticate, examine }: DoctorDeps): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'GET')
    requireBoth(authenticate(req, 'admin'))
    const thorough = readParameter(readQuery(req, ['thorough']), 'thorough') ?? 'false'
    if (thorough !== 'true' && thorough !== 'false') {
      throw invalidParameter('thorough', 'is neither "true" nor "false"')
    }
    const findings = await examine(thorough === 'true')
    const ok = findings.every(({ level }) => level !== 'fail')
    sendJson(res, 200, { ok, findings } satisfies DoctorJson, { 'Cache-Control': 'no-store' })
  }
}
