import { PLATFORM_NAMES, type PlatformName } from '../provider/accounts.js'
import type { Environment } from '../provider/event.js'
import type { TargetRef } from '../store/memberships.js'

export type AdapterName = PlatformName

/** The ids of a role or group on its platform, in the order of its key. */
const TARGET_IDS = {
  discord: ['guildId', 'roleId'],
  telegram: ['groupId'],
} as const satisfies Readonly<Record<AdapterName, readonly string[]>>

/** Something on a platform that an account can be a member of, and that follows access in one environment. */
export type TargetOn<Name extends AdapterName> = {
  readonly adapter: Name
  readonly environment: Environment
} & Readonly<Record<(typeof TARGET_IDS)[Name][number], string>>

/** A role of a community. */
export type DiscordTarget = TargetOn<'discord'>
/** A group of a messenger. */
export type TelegramTarget = TargetOn<'telegram'>
export type Target = { readonly [Name in AdapterName]: TargetOn<Name> }[AdapterName]

/** Names a target in the store, in answers and in metrics, for every environment. */
export function targetKey(target: Target): string {
  const ids: Readonly<Record<string, string>> = { ...target }
  return [target.adapter, ...TARGET_IDS[target.adapter].map((name) => ids[name])].join(':')
}

/** The target with this `targetKey`; null if the key is not valid. */
export function parseTargetKey(key: string, environment: Environment): Target | null {
  const [first, ...ids] = key.split(':')
  const adapter = PLATFORM_NAMES.find((name) => name === first)
  if (adapter === undefined || ids.length !== TARGET_IDS[adapter].length) return null
  const named = TARGET_IDS[adapter].map((name, i) => [name, ids[i]])
  return { adapter, environment, ...Object.fromEntries(named) } as Target
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
export function targetsOf(products: readonly SyncedProduct[], stored: readonly TargetRef[]) {
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
