import type { Environment } from '../provider/event.js'

/** A community role that follows access to a product, in one environment. */
export interface DiscordTarget {
  readonly adapter: 'discord'
  readonly guildId: string
  readonly roleId: string
  readonly environment: Environment
}

/** A messenger group that follows access to a product, in one environment. */
export interface TelegramTarget {
  readonly adapter: 'telegram'
  readonly groupId: string
  readonly environment: Environment
}

/** Something on a platform that one is a member of or not. */
export type Target = DiscordTarget | TelegramTarget

export type AdapterName = Target['adapter']
export const ADAPTER_NAMES = ['discord', 'telegram'] as const satisfies readonly AdapterName[]

/** The platform account that a customer's membership hangs on, as the customer's facts name it. */
export const ACCOUNT_FACT = {
  discord: 'communityId',
  telegram: 'messengerId',
} as const satisfies Record<AdapterName, string>

/** Names a target in the store, in answers and in metrics, whatever its environment. */
export function targetKey(target: Target): string {
  switch (target.adapter) {
    case 'discord':
      return `discord:${target.guildId}:${target.roleId}`
    case 'telegram':
      return `telegram:${target.groupId}`
    default:
      return target satisfies never
  }
}

/** The target that `targetKey` named so; null: none. */
export function parseTargetKey(key: string, environment: Environment): Target | null {
  const [adapter, first, second, ...rest] = key.split(':')
  if (first === undefined || rest.length > 0) return null
  if (adapter === 'discord' && second !== undefined) {
    return { adapter, guildId: first, roleId: second, environment }
  }
  if (adapter === 'telegram' && second === undefined) return { adapter, groupId: first, environment }
  return null
}
