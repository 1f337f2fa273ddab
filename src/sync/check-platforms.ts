import { failedCheck } from './failed-check.js'
import type { CheckFinding, Platform } from './platform.js'
import type { SyncedProduct } from './sync.js'
import { ADAPTER_NAMES, type AdapterName, targetKey } from './target.js'

/**
 * Asks each platform about the configured targets. A platform that does not answer is a finding.
 * @param obstacle what is found without asking a platform, which is not to be asked now; null: it may be
 */
export async function checkPlatforms(
  products: readonly SyncedProduct[],
  platforms: ReadonlyMap<AdapterName, Platform>,
  obstacle: (name: AdapterName) => CheckFinding | null,
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
    const found = obstacle(name)
    if (found !== null) return [found]
    try {
      return await platform.check(targets)
    } catch (error) {
      return [failedCheck(name, error)]
    }
  })
  return (await Promise.all(findings)).flat()
}
