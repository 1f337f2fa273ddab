import { policyFrom } from '../config/policy.js'
import type { Config } from '../config/schema.js'
import { catalogOf } from '../entitlements/features.js'
import { targetKey } from '../sync/target.js'

/** The config in use, which a reload replaces, and what follows from it. */
export type CurrentConfig = ReturnType<typeof createCurrentConfig>

export function createCurrentConfig(first: Config) {
  let config = first
  let catalog = catalogOf(first.products)
  let note: string | null = null
  return {
    now: () => config,
    endpointNames: () => config.endpoints.map(({ name }) => name),
    /** By name: what reading their events again depends on. */
    endpointRules: () =>
      Object.fromEntries(
        config.endpoints.map(({ name, environment, aheadAtMostMs }) => [
          name,
          { environment, aheadAtMostMs },
        ]),
      ),
    /** What the routes take of it. */
    forRoutes: {
      endpoints: () => config.endpoints,
      catalog: () => catalog,
      products: () =>
        config.products.map(({ id, name, features, targets }) => ({
          ...{ id, name, features },
          targets: targets.map((one) => ({ environment: one.environment, target: targetKey(one) })),
        })),
      configuredPolicy: () => config.policy,
      policyIn: policyFrom,
      /** A reload does not change it. */
      reference: first.identity.ref,
    },
    /** How the config file differs from it; null: it does not. */
    note: () => note,
    setNote(next: string | null): void {
      note = next
    },
    replace(next: Config): void {
      config = next
      catalog = catalogOf(next.products)
    },
  }
}
