/* What no webhook told, from the payments service's own records. */

import { counted } from '../doctor/finding.js'
import { LatchkeyError } from '../errors.js'
import type { BackfillJson, BackfillSummaryJson } from '../handlers/backfills.js'
import { apiCommand, flag, parseId, value } from './command.js'
import { pathOf } from './known.js'
import { follow } from './progress.js'
import { differenceText, moreLine } from './recompute.js'
import { linesText, tableLines } from './text.js'

const SAMPLE = 20

export const backfillCommand = apiCommand('backfill', {
  kind: 'changes',
  about: 'read the payments service’s own records, and store what no webhook told',
  examples: ['backfill --dry-run', 'backfill', 'backfill --email ada@example.com'],
  options: {
    dryRun: flag('show what would be stored and whose access would change; store nothing'),
    payments: flag('only payments (default: payments and subscriptions)'),
    subscriptions: flag('only subscriptions'),
    customer: value('<id>', 'only the records of this customer', parseId),
  },
  async run({ api, options, context, show }) {
    const { dryRun = false, payments, subscriptions, customer } = options
    const isAll = payments === subscriptions
    const body = {
      ...{ dryRun, customerId: customer ?? null },
      ...{ payments: isAll || payments === true, subscriptions: isAll || subscriptions === true },
    }
    const sent = { query: { environment: api.environment }, body }
    const started = await api.send<BackfillJson>('POST', '/backfills', sent)
    const path = pathOf('backfills', started.id)
    // The answer to the next question shows that it has stopped.
    const stop = (): void => void api.send('DELETE', path, {}).catch(() => {})
    process.once('SIGINT', stop)
    const ask = () => api.get<BackfillJson>(path)
    const watched = {
      ask,
      progressOf,
      name: 'backfill',
      code: 'backfill_failed',
      unit: 'records read',
    } as const
    const { state, summary, reason } = await follow(started, watched, context).finally(() =>
      process.off('SIGINT', stop),
    )
    if (summary === null) {
      const todo = state === 'failed' ? ' Run it again to go on where it was.' : ''
      throw new LatchkeyError('backfill_failed', `${reason ?? 'The backfill was stopped.'}${todo}`)
    }
    show(summary, () => backfillText(summary, body))
  },
})

function progressOf({ progress: { phase, read, perSecond } }: BackfillJson) {
  const pace = perSecond === null ? '' : `, ${Math.round(perSecond)} a second`
  return { done: read, total: null, text: `, ${DOING[phase] ?? phase}${pace}` }
}

const DOING: Readonly<Record<string, string>> = {
  chargebacks: 'reading chargebacks',
  customer: 'reading one customer',
  subscriptions: 'reading subscriptions',
  payments: 'reading payments',
  kept: 'comparing subscriptions',
  unlisted: 'asking for what no list showed',
  result: 'adding up',
}

function backfillText(
  { read, told, stored, chargebacks, differences, unknown, unusable, access }: BackfillSummaryJson,
  {
    dryRun,
    payments,
    customerId,
  }: { readonly dryRun: boolean; readonly payments: boolean; readonly customerId: string | null },
): string {
  const by = Object.entries(stored.byType).map(([type, count]) => `${count} ${type}`)
  const isOf = (count: number, one: string, many: string) => `${count} ${count === 1 ? one : many}`
  const lines = [
    `read ${counted(read.payments, 'payment')} and ${counted(read.subscriptions, 'subscription')}; ` +
      `${told} already known`,
    `${counted(stored.total, 'event')} ${dryRun ? 'would be stored' : 'stored'}${by.length === 0 ? '' : `: ${by.join(', ')}`}`,
    customerId !== null &&
      read.payments + read.subscriptions === 0 &&
      `the payments service has nothing on record of ${customerId}: check the id and the environment`,
    payments &&
      chargebacks === null &&
      'chargebacks are unknown: set provider.<environment>.legacy to read them',
    unknown.total > 0 &&
      `${isOf(unknown.total, 'record gives', 'records give')} access here and ${unknown.total === 1 ? 'is' : 'are'} not known to the payments service:`,
    ...tableLines(unknown.sample.slice(0, SAMPLE).map(({ kind, id }) => [`  ${kind}`, id])),
    unusable > 0 && `${isOf(unusable, 'record', 'records')} could not be used`,
    differences.total > 0 && `${counted(differences.total, 'difference')} left:`,
    ...tableLines(
      differences.sample
        .slice(0, SAMPLE)
        .map(({ recordId, about, text }) => [`  ${recordId}`, about === null ? text : `${text} (${about})`]),
    ),
    moreLine(differences.total - Math.min(SAMPLE, differences.sample.length)),
  ]
  return `${linesText(lines)}${differenceText(access, dryRun)}`
}
