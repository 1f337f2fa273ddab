/* The table of all routes, and which of them a listener serves. */

import { readFileSync } from 'node:fs'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { packageFile } from '../package-file.js'
import { type BackfillDeps, backfillRoutes } from './backfills.js'
import { type ChangeStreamRouteDeps, changeStreamRoute } from './change-stream.js'
import { changeQuestions } from './changes.js'
import { checkRoute } from './checks.js'
import { type ConsoleRouteDeps, consoleRoutes } from './console.js'
import { type ControlDeps, controlRoutes, type KeysDeps, keysRoute } from './control.js'
import { type ActDeps, actRoutes, customerQuestions } from './customers.js'
import { type DeliveryDeps, deliveryRoutes } from './deliveries.js'
import { type EntitlementDeps, entitlementRoutes } from './entitlements.js'
import { eventQuestions, type ImportDeps, importRoute } from './events.js'
import { type HealthDeps, healthRoutes } from './health.js'
import { createListener, createShortcut, type MountedPath, mountRoutes } from './mount.js'
import { type ProductDeps, productQuestions } from './products.js'
import { type ComparisonDeps, comparisonRoutes, type RebuildDeps, rebuildRoutes } from './rebuilds.js'
import { type ReplayDeps, replayRoutes } from './replays.js'
import { type Route, type RouteGroup, route } from './route.js'
import type { SyncDeps, SyncQuestionDeps } from './sync/deps.js'
import { syncQuestions, syncRoutes } from './sync.js'
import { type TelegramDeps, telegramRoutes } from './telegram.js'
import { WEBHOOK_PATH, type WebhookDeps, webhookRoutes } from './webhooks.js'

/** The dependencies of the routes that only ask: a store that can be read has all that they need. */
export type QuestionDeps = EntitlementDeps &
  ProductDeps &
  ReplayDeps &
  ComparisonDeps &
  SyncQuestionDeps &
  KeysDeps

/** The dependencies of all handlers. */
export type RouteDeps = QuestionDeps &
  WebhookDeps &
  ActDeps &
  ChangeStreamRouteDeps &
  ImportDeps &
  BackfillDeps &
  RebuildDeps &
  SyncDeps &
  TelegramDeps &
  HealthDeps &
  DeliveryDeps &
  ControlDeps &
  ConsoleRouteDeps & {
    readonly hasConsole: boolean
  }

const FOR_ANYBODY = { scope: null, environments: 'none', query: 'any' } as const

const files = new Map<string, Buffer>()

/** A file that `npm run schema` makes of this table. Read once: anybody can ask for it. */
function fileNamed(name: 'openapi.json' | 'openapi.html'): Buffer {
  const content = files.get(name) ?? readFileSync(packageFile(name))
  files.set(name, content)
  return content
}

export const ROUTE_GROUPS: readonly RouteGroup<RouteDeps>[] = [
  { name: 'Webhooks', about: 'The payments service delivers its events here.', routes: webhookRoutes },
  { name: 'Access', about: 'What customers may use, and why.', routes: [checkRoute, ...entitlementRoutes] },
  {
    name: 'Customers',
    about: 'What is stored about a customer, the change log, and changes by hand.',
    routes: [...customerQuestions, ...productQuestions, ...changeQuestions, changeStreamRoute, ...actRoutes],
  },
  {
    name: 'Events',
    about: 'Stored events, their exact bytes, exports and imports.',
    routes: [...eventQuestions, importRoute],
  },
  { name: 'Replays', about: 'Stored events are read again by the current program.', routes: replayRoutes },
  {
    name: 'Backfills',
    about: "The payments service's own records are read, and what no webhook told is stored.",
    routes: backfillRoutes,
  },
  {
    name: 'Policy',
    about: 'The policy, and jobs that compute all access again.',
    routes: [...comparisonRoutes, ...rebuildRoutes],
  },
  {
    name: 'Sync',
    about: 'Roles, groups and the outbound webhooks, which follow access.',
    routes: [...syncQuestions, ...syncRoutes],
  },
  { name: 'Telegram', about: 'Links with which customers join groups.', routes: telegramRoutes },
  {
    name: 'Health',
    about: 'Health, findings and metrics of the daemon.',
    routes: [...healthRoutes, ...deliveryRoutes],
  },
  {
    name: 'Description',
    about: 'This description of the API.',
    routes: [
      route('GET /openapi.json', {
        operationId: 'getApiDescription',
        summary: 'The API as an OpenAPI 3.1 document.',
        ...FOR_ANYBODY,
        answer: 'application/json',
        handle: () => ({ content: fileNamed('openapi.json'), type: 'application/json' }),
      }),
      route('GET /docs', {
        operationId: 'getApiDocs',
        summary: 'The same as a page to read.',
        ...FOR_ANYBODY,
        answer: 'text/html',
        handle: () => ({ content: fileNamed('openapi.html'), type: 'text/html; charset=utf-8' }),
      }),
    ],
  },
  {
    name: 'Daemon',
    about: 'The status of the daemon; reload and stop.',
    routes: [...controlRoutes, keysRoute],
  },
  { name: 'Console', about: "For the operator's console, a page of the daemon.", routes: consoleRoutes },
]

/** If two paths match a request, the first one serves it. */
export const ROUTES = ROUTE_GROUPS.flatMap(({ routes }) => routes)

/** The routes that only ask: of the store, and nothing else. (Of replays, only dry runs do.) */
const QUESTIONS: readonly Route<QuestionDeps>[] = [
  checkRoute,
  ...entitlementRoutes,
  ...customerQuestions,
  ...productQuestions,
  ...changeQuestions,
  ...eventQuestions,
  ...replayRoutes,
  ...comparisonRoutes,
  ...syncQuestions,
  keysRoute,
]

/** Serves the routes that only ask. */
export function createQuestionApi(deps: QuestionDeps): RequestListener {
  return createListener(mountRoutes(QUESTIONS, deps), deps.log)
}

/** Takes a delivery that another server has accepted. @param endpoint its name, still percent-encoded */
export type Receive = (req: IncomingMessage, res: ServerResponse, endpoint: string) => void

/** @param takeOther answers a request that the table has no route for, and returns whether it has */
export function createApi(
  deps: RouteDeps,
  hasDeliveries: boolean,
  takeOther: (req: IncomingMessage, res: ServerResponse) => boolean = () => false,
) {
  const routes = deps.hasConsole ? ROUTES : ROUTES.filter(({ path }) => !path.startsWith('/console/'))
  const table = mountRoutes(routes, deps)
  const pathNamed = (name: string) => table.find(({ path }) => path === name) as MountedPath
  const webhooks = pathNamed(WEBHOOK_PATH)
  const takeWebhook = createShortcut(webhooks)
  const takeQuestion = createShortcut(pathNamed('/entitlements/:customerId'), ['GET', 'HEAD'])
  const paths = hasDeliveries ? table : table.filter((one) => one !== webhooks)
  return {
    /** The whole table, except the route for deliveries if that has its own listener. */
    all: createListener(
      paths,
      deps.log,
      hasDeliveries ? [takeWebhook, takeQuestion, takeOther] : [takeQuestion, takeOther],
    ),
    /** Only the route for deliveries. */
    delivered: createListener([webhooks], deps.log, [takeWebhook]),
    receive: ((req, res, endpoint) => void webhooks.serve(req, res, `/webhooks/${endpoint}`)) as Receive,
  }
}
