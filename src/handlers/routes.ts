import { type CustomerDeps, customerRoutes } from './customers.js'
import { type EntitlementDeps, entitlementRoutes } from './entitlements.js'
import { type EventDeps, eventRoutes } from './events.js'
import { type HealthDeps, healthRoutes } from './health.js'
import { type RebuildDeps, rebuildRoutes } from './rebuilds.js'
import { type ReplayDeps, replayRoutes } from './replays.js'
import type { Route } from './route.js'
import { type TelegramDeps, telegramRoutes } from './telegram.js'
import { type WebhookDeps, webhookRoutes } from './webhooks.js'

/** What the handlers of all routes are given. */
export type RouteDeps = WebhookDeps &
  EntitlementDeps &
  CustomerDeps &
  EventDeps &
  ReplayDeps &
  RebuildDeps &
  TelegramDeps &
  HealthDeps

/** Every route that there is. Of two whose paths fit the same request, the first one takes it. */
export const ROUTES: readonly Route<RouteDeps>[] = [
  ...webhookRoutes,
  ...entitlementRoutes,
  ...customerRoutes,
  ...eventRoutes,
  ...replayRoutes,
  ...rebuildRoutes,
  ...telegramRoutes,
  ...healthRoutes,
]
