import { type Command, Option } from 'commander'
import type { SyncStatusJson } from '../handlers/sync-json.js'
import { MEMBERSHIP_STATES } from '../sync/sync.js'
import { jsonLine, parseId } from './command.js'
import type { CliContext } from './context.js'
import { throughDaemon } from './daemon-client.js'
import { listMemberships, type MembershipsOptions } from './sync-memberships.js'
import { queryText, type SyncOptions, syncCommand, withEnvironment } from './sync-options.js'
import { statusText } from './sync-status-text.js'

/** `latchkey sync status`: how it stands; with a filter, which memberships those are. */
export function syncStatusCommand(program: Command, context: CliContext): void {
  withEnvironment(
    syncCommand(program, 'status', 'status', 'status --state parked', 'status --customer cus_1'),
  )
    .description('show how roles, groups and the outbound webhook stand, with a daemon or without')
    .addOption(new Option('--state <state>', 'list the memberships that are so').choices(MEMBERSHIP_STATES))
    .option('--target <target>', 'list the memberships of a role or group, such as discord:1:2', parseId)
    .option('--customer <id>', 'list the memberships of a customer', parseId)
    .action(async (options: MembershipsOptions) => {
      const { state, target, customer } = options
      if (state !== undefined || target !== undefined || customer !== undefined) {
        return listMemberships(options, context)
      }
      const status = await readStatus(options, context)
      context.out(options.json ? jsonLine(status) : statusText(status, context.now()))
    })
}

async function readStatus(options: SyncOptions, context: CliContext): Promise<SyncStatusJson> {
  const { environment } = options
  const request = { method: 'GET', path: `/sync${queryText({ environment })}` } as const
  const status = await throughDaemon(options, context, request, async (config) => {
    context.err('note: no daemon runs, so that nothing is given, taken or sent now\n')
    const { readSyncStatus } = await import('./read-sync.js')
    return readSyncStatus(config, context, environment)
  })
  return status as SyncStatusJson
}
