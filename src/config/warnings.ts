import type { Issue } from '../errors.js'
import { SECRET_PREFIX } from './access-schema.js'
import { formatPath } from './issues.js'
import type { Config } from './types.js'

/** Dunning may last this long; access that lapses sooner ends for customers who still pay. */
const SHORT_LAPSE_MS = 30 * 86_400_000

/** Somebody may dispute a payment for weeks, and until then its events may be asked for as they came. */
const SHORT_RETENTION_MS = 35 * 86_400_000

/** Without its prefix. */
const SHORT_SECRET = 16

/** What is allowed, and seldom meant. */
export function findWarnings({ endpoints, policy, retention, products, sync }: Config): Issue[] {
  const warnings: Issue[] = []
  if (endpoints.length === 0) {
    warnings.push({ path: 'endpoints', message: 'is empty: no delivery can be received' })
  }
  for (const { name, secrets } of endpoints) {
    for (const [index, { secret }] of secrets.entries()) {
      const path = formatPath(['endpoints', name, 'secrets', index])
      for (const message of doubtsAbout(secret)) warnings.push({ path, message })
    }
  }
  for (const [rail, types] of Object.entries(policy.grantOn)) {
    const path = formatPath(['policy', 'grantOn', rail])
    if (types.length === 0) warnings.push({ path, message: 'is empty: no such payment gives access' })
  }
  if (policy.lapseAfter !== null && policy.lapseAfter < SHORT_LAPSE_MS) {
    warnings.push({ path: 'policy.lapseAfter', message: 'is under 30 days, which dunning may last' })
  }
  if (retention !== null && retention.bodiesAfterMs < SHORT_RETENTION_MS) {
    const message = 'is under 35 days: what came can not be read again, nor exported, after that'
    warnings.push({ path: 'retention.bodiesAfter', message })
  }
  for (const { id, targets } of products) {
    for (const environment of new Set(targets.map((target) => target.environment))) {
      if (endpoints.some((endpoint) => endpoint.environment === environment)) continue
      const path = formatPath(['products', id, 'targets'])
      warnings.push({ path, message: `follow ${environment} access, and no endpoint is ${environment}` })
    }
  }
  if (sync.webhook !== null && isReadable(sync.webhook.url)) {
    warnings.push({ path: 'sync.webhook.url', message: 'is not https: what is sent can be read on the way' })
  }
  return warnings
}

function doubtsAbout(secret: string): string[] {
  const doubts: string[] = []
  const text = secret.trim()
  const after = text.startsWith(SECRET_PREFIX) ? ` after ${SECRET_PREFIX}` : ''
  if (text !== secret) doubts.push('begins or ends with white space, which counts')
  if (after === '') doubts.push(`does not begin with ${SECRET_PREFIX}, as the provider's secrets do`)
  if (text.replace(/^whsec_/, '').trim().length < SHORT_SECRET)
    doubts.push(`can be guessed: it has fewer than ${SHORT_SECRET} characters${after}`)
  return doubts
}

/** Whether others than this machine see what is sent to an address. */
function isReadable(address: string): boolean {
  const { protocol, hostname } = new URL(address)
  return protocol === 'http:' && !/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)
}
