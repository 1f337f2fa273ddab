import { type HealthDeps, healthRoutes } from './health.js'
import type { Route } from './route.js'

/** What the handlers of all routes are given. */
export type RouteDeps = HealthDeps

/** Every route that there is. Of two whose paths fit the same request, the first one takes it. */
export const ROUTES: readonly Route<RouteDeps>[] = [...healthRoutes]
