/* Which pages there are. Each is loaded when it is first shown. */

import type { ComponentType } from 'preact'
import type { Scope } from '../api.js'
import type { PageProps } from '../router.js'

export interface PageEntry {
  /** Below `/console`, such as `/customers/:customerId`. */
  readonly path: string
  readonly title: string
  /** In the navigation, with the letter that leads there behind `g`; without one, only links lead to it. */
  readonly nav?: string
  /** The page needs it; what else it shows it asks the session about. */
  readonly scope: Scope
  /** It is about live and the sandbox: the key must have both. */
  readonly ofBoth?: 'ofBoth'
  readonly load: () => Promise<{ readonly Page: ComponentType<PageProps> }>
}

const ofBoth = 'ofBoth'

/** In the order of the navigation. The first that the key may see is where one begins. */
export const PAGES: readonly PageEntry[] = [
  { path: '/', title: 'Overview', nav: 'o', scope: 'admin', load: () => import('./overview.js') },
  { path: '/customers', title: 'Customers', nav: 'c', scope: 'read', load: () => import('./customers.js') },
  { path: '/customers/:customerId', title: 'Customer', scope: 'read', load: () => import('./customer.js') },
  { path: '/events', title: 'Events', nav: 'e', scope: 'events', load: () => import('./events.js') },
  { path: '/events/:eventId', title: 'Event', scope: 'events', load: () => import('./event.js') },
  { path: '/products', title: 'Products', nav: 'p', scope: 'read', load: () => import('./products.js') },
  { path: '/products/:productId', title: 'Product', scope: 'read', load: () => import('./products.js') },
  { path: '/changes', title: 'Changes of access', scope: 'read', load: () => import('./changes.js') },
  { path: '/sync', title: 'Sync', nav: 's', scope: 'admin', load: () => import('./sync.js') },
  { path: '/sync/memberships', title: 'Memberships', scope: 'admin', load: () => import('./memberships.js') },
  { path: '/sync/messages', title: 'Messages', scope: 'admin', load: () => import('./messages.js') },
  { path: '/policy', title: 'Policy', nav: 'y', scope: 'admin', ofBoth, load: () => import('./policy.js') },
]
