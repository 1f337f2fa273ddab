import type { CheckFinding, Platform } from './platform.js'
import { ActionRequiredError, RetryableError } from './platform-errors.js'
import type { SyncedProduct } from './sync.js'
import { ADAPTER_NAMES, type AdapterName, targetKey } from './target.js'

/**
 * Asks each platform about the configured targets. A platform that does not answer is a finding.
 * @param obstacle why a platform is not to be asked now; null: it may be
 */
export async function checkPlatforms(
  products: readonly SyncedProduct[],
  platforms: ReadonlyMap<AdapterName, Platform>,
  obstacle: (name: AdapterName) => string | null,
): Promise<readonly CheckFinding[]> {
  const configured = new Map(
    products.flatMap(({ targets }) => targets).map((target) => [targetKey(target), target]),
  )
  const findings = ADAPTER_NAMES.map(async (name): Promise<readonly CheckFinding[]> => {
    const targets = [...configured.values()].filter(({ adapter }) => adapter === name)
    const platform = platforms.get(name)
    if (platform === undefined) {
      return targets.map((target) => ({
        about: targetKey(target),
        isFine: false,
        message: `There is no bot for it: add sync.${name} to the config.`,
      }))
    }
    const reason = obstacle(name)
    if (reason !== null) return [{ about: name, isFine: false, message: reason }]
    try {
      return await platform.check(targets)
    } catch (error) {
      if (!(error instanceof RetryableError || error instanceof ActionRequiredError)) throw error
      return [{ about: name, isFine: false, message: error.message }]
    }
  })
  return (await Promise.all(findings)).flat()
}
