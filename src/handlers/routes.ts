/* The table of all routes, and which of them a listener serves. */

import type { RequestListener } from 'node:http'
import { type ControlDeps, controlRoutes } from './control.js'
import { type CustomerDeps, customerRoutes } from './customers.js'
import { type EntitlementDeps, entitlementRoutes } from './entitlements.js'
import { type EventDeps, eventRoutes } from './events.js'
import { type HealthDeps, healthRoutes } from './health.js'
import { createListener, createShortcut, type MountedPath, mountRoutes } from './mount.js'
import { type RebuildDeps, rebuildRoutes } from './rebuilds.js'
import { type ReplayDeps, replayRoutes } from './replays.js'
import type { MountDeps, Route } from './route.js'
import { type SyncDeps, syncRoutes } from './sync.js'
import { type TelegramDeps, telegramRoutes } from './telegram.js'
import { WEBHOOK_PATH, type WebhookDeps, webhookRoutes } from './webhooks.js'

/** The dependencies of all handlers. */
export type RouteDeps = WebhookDeps &
  EntitlementDeps &
  CustomerDeps &
  EventDeps &
  ReplayDeps &
  RebuildDeps &
  SyncDeps &
  TelegramDeps &
  HealthDeps &
  ControlDeps

/** If two paths match a request, the first one serves it. */
export const ROUTES: readonly Route<RouteDeps>[] = [
  ...webhookRoutes,
  ...entitlementRoutes,
  ...customerRoutes,
  ...eventRoutes,
  ...replayRoutes,
  ...rebuildRoutes,
  ...syncRoutes,
  ...telegramRoutes,
  ...healthRoutes,
  ...controlRoutes,
]

/** `all`: the whole table, except the route for deliveries if that has its own listener; `delivered`: only that. */
export function createApi(
  deps: RouteDeps & MountDeps,
  hasDeliveries: boolean,
): { readonly all: RequestListener; readonly delivered: RequestListener } {
  const table = mountRoutes(ROUTES, deps)
  const pathNamed = (name: string) => table.find(({ path }) => path === name) as MountedPath
  const webhooks = pathNamed(WEBHOOK_PATH)
  const takeWebhook = createShortcut(webhooks)
  const takeQuestion = createShortcut(pathNamed('/entitlements/:customerId'), ['GET', 'HEAD'])
  const paths = hasDeliveries ? table : table.filter((one) => one !== webhooks)
  return {
    all: createListener(paths, deps.log, hasDeliveries ? [takeWebhook, takeQuestion] : [takeQuestion]),
    delivered: createListener([webhooks], deps.log, [takeWebhook]),
  }
}
