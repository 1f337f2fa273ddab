import type { Issue } from '../errors.js'
import { formatPath } from './issues.js'
import type { Config } from './types.js'

/** Dunning may last this long; access that lapses sooner ends for customers who still pay. */
const SHORT_LAPSE_MS = 30 * 86_400_000

/** Part of the secret's text, and of the HMAC key. */
const SECRET_PREFIX = 'whsec_'

/** What is allowed, and seldom meant. */
export function findWarnings({ endpoints, policy }: Config): Issue[] {
  const warnings: Issue[] = []
  if (endpoints.length === 0) {
    warnings.push({ path: 'endpoints', message: 'is empty: no delivery can be received' })
  }
  for (const { name, secrets } of endpoints) {
    for (const [index, { secret }] of secrets.entries()) {
      const path = formatPath(['endpoints', name, 'secrets', index])
      if (secret !== secret.trim())
        warnings.push({ path, message: 'begins or ends with white space, which counts' })
      if (!secret.trim().startsWith(SECRET_PREFIX))
        warnings.push({ path, message: `does not begin with ${SECRET_PREFIX}, as the provider's secrets do` })
    }
  }
  for (const [rail, types] of Object.entries(policy.grantOn)) {
    const path = formatPath(['policy', 'grantOn', rail])
    if (types.length === 0) warnings.push({ path, message: 'is empty: no such payment gives access' })
  }
  if (policy.lapseAfter !== null && policy.lapseAfter < SHORT_LAPSE_MS) {
    warnings.push({ path: 'policy.lapseAfter', message: 'is under 30 days, which dunning may last' })
  }
  return warnings
}
