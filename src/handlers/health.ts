/* The state of the daemon: its health, the findings of `latchkey doctor`, and its metrics. */

import { z } from 'zod'
import type { Finding } from '../doctor/finding.js'
import { LatchkeyError } from '../errors.js'
import type { RequestMetrics } from '../operations/metrics.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import { flagParameter } from './query.js'
import { ADMIN_OF_BOTH, type MountDeps, type Route, route } from './route.js'

/** Whether deliveries can be stored, and notes for the operator. Notes hold no personal data. */
export interface Readiness {
  readonly ready: boolean
  readonly notes: readonly string[]
}

export interface HealthDeps extends MountDeps {
  readonly isWriterAlive: () => boolean
  readonly readiness: () => Promise<Readiness>
  readonly examine: (thorough: boolean) => Promise<readonly Finding[]>
  readonly metrics: RequestMetrics
}

export const doctorAnswer = z.object({
  /** No finding is a failure. */
  ok: z.boolean(),
  findings: z.array(
    z.object({
      level: z.enum(['ok', 'warn', 'fail']),
      what: z.string(),
      detail: z.string(),
      todo: z.string().nullable(),
    }),
  ),
})
export type DoctorJson = z.input<typeof doctorAnswer>

/** Shows the series of these environments; those of the process are always shown. */
const getMetrics = route('GET /metrics', {
  operationId: 'getMetrics',
  summary: 'The metrics, in the Prometheus text format.',
  scope: 'metrics',
  environments: 'shown',
  query: 'any',
  answer: 'text/plain',
  async handle({ environments }, { metrics: { registry }, endpoints }: HealthDeps) {
    const text = await registry.metrics()
    const isAll = new Set(environments).size > 1
    const content = isAll ? text : seriesOf(text, environments, endpoints())
    return { content, type: registry.contentType }
  },
})

/** On a separate listener: anybody who can reach it may read it. */
export const openMetrics: Route<HealthDeps> = { ...getMetrics, scope: null, environments: 'none' }

export const healthRoutes: readonly Route<HealthDeps>[] = [
  route('GET /healthz', {
    operationId: 'getHealth',
    summary: 'Whether the process and its writer are alive.',
    scope: null,
    environments: 'none',
    query: 'any',
    answer: z.object({ status: z.literal('ok') }),
    errors: ['store_unavailable'],
    handle(_asked, { isWriterAlive }: HealthDeps) {
      if (!isWriterAlive()) throw new LatchkeyError('store_unavailable', 'The writer has stopped.')
      return { status: 'ok' as const }
    },
  }),
  route('GET /readyz', {
    operationId: 'getReadiness',
    summary: 'Whether the store is migrated and takes deliveries.',
    scope: null,
    environments: 'none',
    query: 'any',
    answer: z.object({ status: z.literal('ready'), notes: z.array(z.string()) }),
    errors: ['store_unavailable'],
    async handle(_asked, { readiness }: HealthDeps) {
      const { ready, notes } = await readiness()
      if (!ready) throw new LatchkeyError('store_unavailable', notes.join('; ') || 'Not ready to store.')
      return { status: 'ready' as const, notes }
    },
  }),
  route('GET /doctor', {
    operationId: 'getFindings',
    summary: 'Every check, and what to do about each finding; thorough reads every page and body.',
    ...ADMIN_OF_BOTH,
    query: z.object({ thorough: flagParameter.default(false) }),
    answer: doctorAnswer,
    hasNoHead: true,
    async handle({ query: { thorough } }, { examine }: HealthDeps) {
      const findings = await examine(thorough)
      return { ok: findings.every(({ level }) => level !== 'fail'), findings }
    },
  }),
  getMetrics,
]

/** No label value can contain this text: quotes in a value are escaped. */
const BELONGS_TO = /[{,](environment|endpoint)="([^"]*)"/

/** Of a line with a sample. */
const nameOf = (line: string): string => /^\w*/.exec(line)?.[0] ?? ''

/** Drops the series that count both environments together, and names those metrics in a comment. */
function seriesOf(text: string, shown: readonly Environment[], endpoints: readonly Endpoint[]): string {
  const isShown = (line: string): boolean => {
    if (!line.startsWith('latchkey_')) return true
    const [, label, value = ''] = BELONGS_TO.exec(line) ?? []
    if (label === undefined) return false
    const endpoint = label === 'endpoint' ? endpoints.find(({ name }) => name === value) : undefined
    const environment = label === 'endpoint' ? endpoint?.environment : value
    return shown.some((one) => one === environment)
  }
  const lines = text.split('\n')
  const left = new Set(lines.filter(isShown).map(nameOf))
  const out = new Set(lines.filter((line) => !isShown(line)).map(nameOf))
  const missing = [...out].filter((name) => !left.has(name))
  const comment = `# A key for ${shown.join(', ')} alone does not get: ${missing.join(', ')}\n`
  return `${lines.filter(isShown).join('\n')}${missing.length === 0 ? '' : comment}`
}
