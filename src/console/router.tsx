/* Addresses: every view of the console has one, which can be sent to somebody else. */

import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'

const BASE = '/console'

/** Where the reader is: a path below `/console`, such as `/customers/cus_1`, and its parameters. */
export interface Place {
  readonly path: string
  readonly parameters: URLSearchParams
}

function placeNow(): Place {
  const { pathname, search } = window.location
  const path = pathname.slice(BASE.length).replace(/\/+$/, '') || '/'
  return { path, parameters: new URLSearchParams(search) }
}

const place = signal(placeNow())
const moved = (): void => {
  place.value = placeNow()
}
window.addEventListener('popstate', moved)

export const usePlace = (): Place => place.value

export type Parameters = Readonly<Record<string, string | number | boolean | null | undefined>>

/** The address of a view, with its parameters; those that are null, undefined or empty are left out. */
export function addressOf(path: string, parameters: Parameters = {}): string {
  const given = Object.entries(parameters).filter(([, value]) => (value ?? '') !== '')
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)]))
  return `${BASE}${path}${query.size === 0 ? '' : `?${query}`}`
}

/** Goes to another view. @param address of `addressOf`; @param replacing leaves nothing to go back to */
export function navigate(address: string, replacing = false): void {
  window.history[replacing ? 'replaceState' : 'pushState'](null, '', address)
  moved()
}

/** Changes parameters of this view: a filter, a page, the environment. */
export function setParameters(changed: Parameters, replacing = false): void {
  const { path, parameters } = placeNow()
  navigate(addressOf(path, { ...Object.fromEntries(parameters), ...changed }), replacing)
}

export interface PageProps {
  /** Of its path, decoded. */
  readonly ids: Readonly<Record<string, string>>
}

/** The ids in a path, such as `{ customerId }` by `/customers/:customerId`; null if the path is another one. */
export function idsIn(pattern: string, path: string): PageProps['ids'] | null {
  const found = new RegExp(`^${pattern.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}$`).exec(path)
  if (found === null) return null
  try {
    const ids = Object.entries(found.groups ?? {})
    return Object.fromEntries(ids.map(([name, id]) => [name, decodeURIComponent(id)]))
  } catch {
    return null
  }
}

interface LinkProps {
  readonly class?: string
  readonly title?: string
  readonly 'aria-current'?: 'page' | undefined
  readonly to: string
  readonly children: ComponentChildren
}

/** A link to another view. @param to of `addressOf`, or of `useAddress` in `session.tsx` */
export function Link({ to, children, ...rest }: LinkProps) {
  const follow = (event: MouseEvent): void => {
    // A new window or tab is the browser's business.
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    navigate(to)
  }
  return (
    <a href={to} onClick={follow} {...rest}>
      {children}
    </a>
  )
}
