import type { Environment } from '../provider/event.js'
import type { TargetRef } from '../store/memberships.js'

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

/** Anything on a platform that an account can be a member of. */
export type Target = DiscordTarget | TelegramTarget

export type AdapterName = Target['adapter']

/** The fact of a customer that holds the platform account for memberships. */
export const ACCOUNT_FACT = {
  discord: 'communityId',
  telegram: 'messengerId',
} as const satisfies Record<AdapterName, string>
export const ADAPTER_NAMES = Object.keys(ACCOUNT_FACT) as readonly AdapterName[]

/** Names a target in the store, in answers and in metrics, for every environment. */
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

/** The target with this `targetKey`; null if the key is not valid. */
export function parseTargetKey(key: string, environment: Environment): Target | null {
  const [adapter, first, second, ...rest] = key.split(':')
  if (first === undefined || rest.length > 0) return null
  if (adapter === 'discord' && second !== undefined) {
    return { adapter, guildId: first, roleId: second, environment }
  }
  if (adapter === 'telegram' && second === undefined) return { adapter, groupId: first, environment }
  return null
}

/** A product, and the roles and groups that follow access to it. */
export interface SyncedProduct {
  readonly id: string
  readonly targets: readonly Target[]
}

/** A target with memberships. */
export interface SyncTarget extends TargetRef {
  readonly adapter: AdapterName
  readonly of: Target
}

/**
 * Every target that is configured, or was: memberships in a target that no product maps to any more must still be
 * removed.
 */
export function targetsOf(
  products: readonly SyncedProduct[],
  stored: readonly TargetRef[],
): readonly SyncTarget[] {
  const configured = products.flatMap(({ targets }) => targets)
  const former = stored.flatMap(({ environment, target }) => parseTargetKey(target, environment) ?? [])
  const found = new Map<string, SyncTarget>()
  for (const of of [...configured, ...former]) {
    const target = targetKey(of)
    found.set(`${of.environment} ${target}`, {
      environment: of.environment,
      target,
      adapter: of.adapter,
      of,
    })
  }
  return [...found.values()]
}
