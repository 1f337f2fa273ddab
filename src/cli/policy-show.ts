import { isDeepStrictEqual } from 'node:util'
import type { Command } from 'commander'
import type { Policy } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import { jsonLine, loadNamedConfig, type SharedOptions, withSharedOptions } from './command.js'
import { commandGroup } from './command-groups.js'
import type { CliContext } from './context.js'

/** `latchkey policy show`: the policy in force, and where the configured one is another. */
export function policyShowCommand(program: Command, context: CliContext): void {
  const command = commandGroup(program, 'policy').command('show')
  withSharedOptions(command, 'policy show')
    .description('show the policy in force, and where the configured one differs')
    .action(async (options: SharedOptions) => {
      const { readPolicy } = await import('./read-policy.js')
      const { config } = await loadNamedConfig(options, context)
      const { inForce, isUnfinished } = await readPolicy(config)
      if (inForce === null) {
        throw new LatchkeyError('store_unavailable', 'No daemon has settled a policy in this database yet.')
      }
      const differs = differingRows(inForce, config.policy)
      context.out(
        options.json
          ? jsonLine({ inForce, configured: config.policy, differs, unfinishedRebuild: isUnfinished })
          : showText(inForce, config.policy, differs, isUnfinished),
      )
    })
}

function showText(
  inForce: Policy,
  configured: Policy,
  differs: readonly string[],
  unfinished: boolean,
): string {
  const inForceRows = rowsOf(inForce)
  const configuredRows = rowsOf(configured)
  const lines = [...inForceRows].map(([name, value]) => `${name}: ${valueText(value)}`)
  const others = differs.map((name) => `  ${name}: ${valueText(configuredRows.get(name))}`)
  return [
    ...lines,
    ...(others.length === 0
      ? ['the configured policy is the same']
      : ['the configured policy differs, and is not in force: see `latchkey policy diff`', ...others]),
    ...(unfinished ? ['a rebuild has not ended: `latchkey policy apply` or `latchkey rebuild` goes on'] : []),
    '',
  ].join('\n')
}

function differingRows(inForce: Policy, configured: Policy): string[] {
  const others = rowsOf(configured)
  return [...rowsOf(inForce)].flatMap(([name, value]) =>
    isDeepStrictEqual(value, others.get(name)) ? [] : [name],
  )
}

/** `grantOn.card`, `failedRenewal`, and so on, as the config names them. */
function rowsOf({ grantOn, revokeOn, ...switches }: Policy): ReadonlyMap<string, unknown> {
  return new Map<string, unknown>([
    ...Object.entries(grantOn).map(([rail, types]) => [`grantOn.${rail}`, types] as const),
    ...Object.entries(revokeOn).map(([rail, types]) => [`revokeOn.${rail}`, types] as const),
    ...Object.entries(switches),
  ])
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? 'nothing' : value.join(', ')
  if (typeof value === 'number') return `${value / 1000}s`
  return value === null ? 'never' : String(value)
}
