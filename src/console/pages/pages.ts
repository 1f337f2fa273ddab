/* Which pages there are. Each is loaded when it is first shown. */

import type { ComponentType } from 'preact'
import type { Scope } from '../api.js'
import type { PageProps } from '../router.js'

type Row = readonly [
  /** Below `/console`, such as `/customers/:customerId`. */
  path: string,
  title: string,
  /** In the navigation, with the letter that leads there behind `g`; null: only links lead to it. */
  nav: string | null,
  /** The page needs it; what else it shows it asks the session about. Null: any will do. */
  scope: Scope | null,
  load: () => Promise<ComponentType<PageProps>>,
]

/** In the order of the navigation. */
const ROWS: readonly Row[] = [
  ['/', 'Overview', 'o', null, async () => (await import('./overview.js')).Overview],
  ['/customers', 'Customers', 'c', 'read', async () => (await import('./customers.js')).Customers],
  ['/customers/:customerId', 'Customer', null, 'read', async () => (await import('./customer.js')).Customer],
  ['/events', 'Events', 'e', 'events', async () => (await import('./events.js')).Events],
  ['/events/:eventId', 'Event', null, 'events', async () => (await import('./event.js')).Event],
  ['/products', 'Products', 'p', 'read', async () => (await import('./products.js')).Products],
  ['/products/:productId', 'Product', null, 'read', async () => (await import('./products.js')).Product],
  ['/changes', 'Changes of access', null, 'read', async () => (await import('./changes.js')).Changes],
  ['/sync', 'Sync', 's', 'admin', async () => (await import('./sync.js')).Sync],
  [
    '/sync/memberships',
    'Roles and groups',
    null,
    'admin',
    async () => (await import('./memberships.js')).Memberships,
  ],
  ['/sync/messages', 'Messages', null, 'admin', async () => (await import('./messages.js')).Messages],
  ['/policy', 'Policy', 'y', 'admin', async () => (await import('./policy.js')).Policy],
]

export const PAGES = ROWS.map(([path, title, nav, scope, load]) => ({ path, title, nav, scope, load }))
export type PageEntry = (typeof PAGES)[number]
