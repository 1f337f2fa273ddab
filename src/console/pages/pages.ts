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
]
