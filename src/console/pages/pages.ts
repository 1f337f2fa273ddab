/* Which pages there are. Each is loaded when it is first shown. */

import type { ComponentType } from 'preact'
import type { Scope } from '../api.js'

export interface PageProps {
  /** Of its path, decoded. */
  readonly ids: Readonly<Record<string, string>>
}

export interface PageEntry {
  /** Below `/console`, such as `/customers/:customerId`. */
  readonly path: string
  readonly title: string
  /** In the navigation, with the letter that leads there behind `g`; omitted: only links lead to it. */
  readonly nav?: string
  /** The page needs one of these; what else it shows it asks the session about. */
  readonly scopes: readonly Scope[]
  readonly load: () => Promise<ComponentType<PageProps>>
}

/** In the order of the navigation. */
export const PAGES: readonly PageEntry[] = [
  {
    path: '/',
    title: 'Overview',
    nav: 'o',
    scopes: ['read', 'write', 'events', 'metrics', 'admin'],
    load: () => import('./overview.js').then(({ Overview }) => Overview),
  },
  {
    path: '/customers',
    title: 'Customers',
    nav: 'c',
    scopes: ['read'],
    load: () => import('./customers.js').then(({ Customers }) => Customers),
  },
  {
    path: '/customers/:customerId',
    title: 'Customer',
    scopes: ['read'],
    load: () => import('./customer.js').then(({ Customer }) => Customer),
  },
  {
    path: '/events',
    title: 'Events',
    nav: 'e',
    scopes: ['events'],
    load: () => import('./events.js').then(({ Events }) => Events),
  },
  {
    path: '/events/:eventId',
    title: 'Event',
    scopes: ['events'],
    load: () => import('./event.js').then(({ Event }) => Event),
  },
  {
    path: '/products',
    title: 'Products',
    nav: 'p',
    scopes: ['read'],
    load: () => import('./products.js').then(({ Products }) => Products),
  },
  {
    path: '/products/:productId',
    title: 'Product',
    scopes: ['read'],
    load: () => import('./products.js').then(({ Product }) => Product),
  },
  {
    path: '/changes',
    title: 'Changes of access',
    scopes: ['read'],
    load: () => import('./changes.js').then(({ Changes }) => Changes),
  },
  {
    path: '/sync',
    title: 'Sync',
    nav: 's',
    scopes: ['admin'],
    load: () => import('./sync.js').then(({ Sync }) => Sync),
  },
  {
    path: '/sync/memberships',
    title: 'Roles and groups',
    scopes: ['admin'],
    load: () => import('./memberships.js').then(({ Memberships }) => Memberships),
  },
  {
    path: '/sync/messages',
    title: 'Messages',
    scopes: ['admin'],
    load: () => import('./messages.js').then(({ Messages }) => Messages),
  },
  {
    path: '/policy',
    title: 'Policy',
    nav: 'y',
    scopes: ['admin'],
    load: () => import('./policy.js').then(({ Policy }) => Policy),
  },
]
