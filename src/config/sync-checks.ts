import type { Issue } from '../errors.js'
import { formatPath, type Path } from './issues.js'
import { objectAt, valueAt } from './json-values.js'
import { type TargetFile, targetSchema } from './sync-schema.js'

/** A role or group that a product names, and where the config says so. */
interface NamedTarget {
  readonly path: Path
  readonly target: TargetFile
}

/** What is wrong between products and the bots that serve them. Reads whatever parses by itself. */
export function findSyncConflicts(config: unknown): Issue[] {
  const named = namedTargets(config)
  return [...findHalves(config), ...findMissingBots(config, named), ...findSharedTargets(named)]
}

/** What the service calls a community is a guild and a role: one of them alone says nothing. */
function findHalves(config: unknown): Issue[] {
  return productsIn(config).flatMap(([id, product]) => {
    const has = (key: string) => valueAt(product, [key]) !== undefined
    if (has('communityGuildId') === has('communityRoleId')) return []
    const [there, missing] = has('communityGuildId')
      ? ['communityGuildId', 'communityRoleId']
      : ['communityRoleId', 'communityGuildId']
    return [{ path: formatPath(['products', id, missing]), message: `is required beside ${there}` }]
  })
}

function findMissingBots(config: unknown, named: readonly NamedTarget[]): Issue[] {
  return named.flatMap(({ path, target: { adapter } }) => {
    if (valueAt(config, ['sync', adapter]) !== undefined) return []
    return [{ path: formatPath(path), message: `needs a bot: sync.${adapter}.botToken is not set` }]
  })
}

/** Whoever has access in one environment only would lose and get it by turns. */
function findSharedTargets(named: readonly NamedTarget[]): Issue[] {
  return named.flatMap(({ path, target }, position) => {
    const other = named
      .slice(0, position)
      .find((one) => keyOf(one.target) === keyOf(target) && one.target.environment !== target.environment)
    if (other === undefined) return []
    const message = `follows ${target.environment} access, and ${other.target.environment} access in ${formatPath(other.path)}: a role or group follows one environment`
    return [{ path: formatPath(path), message }]
  })
}

function keyOf(target: TargetFile): string {
  switch (target.adapter) {
    case 'discord':
      return `discord ${target.guildId} ${target.roleId}`
    case 'telegram':
      return `telegram ${target.groupId}`
    default:
      return target satisfies never
  }
}

function namedTargets(config: unknown): readonly NamedTarget[] {
  return productsIn(config).flatMap(([id, product]) => {
    const listed = Object.values(objectAt(product, ['targets'])).map((target, index) => ({
      path: ['products', id, 'targets', index],
      target,
    }))
    const value = (key: string) => valueAt(product, [key])
    const pasted = [
      {
        path: ['products', id, 'communityRoleId'],
        target: { adapter: 'discord', guildId: value('communityGuildId'), roleId: value('communityRoleId') },
      },
      {
        path: ['products', id, 'messengerGroupId'],
        target: { adapter: 'telegram', groupId: value('messengerGroupId') },
      },
    ]
    return [...listed, ...pasted].flatMap(({ path, target }) => {
      const parsed = targetSchema.safeParse(target)
      return parsed.success ? [{ path, target: parsed.data }] : []
    })
  })
}

function productsIn(config: unknown): readonly (readonly [string, unknown])[] {
  return Object.entries(objectAt(config, ['products']))
}
