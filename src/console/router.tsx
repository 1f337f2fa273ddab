/* Addresses: every view of the console has one, which can be sent to somebody else. */

import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'

const BASE = '/console'

/** Where the reader is: a path below `/console`, such as `/customers/cus_1`, and its parameters. */
export interface Place {
  readonly path: string
  readonly parameters: URLSearchParams
}

function placeNow(): Place {
  const { pathname, search } = window.location
  return {
    path: pathname.slice(BASE.length).replace(/\/+$/, '') || '/',
    parameters: new URLSearchParams(search),
  }
}

/** The address of a view, with its parameters; those that are null, undefined or empty are left out. */
export function addressOf(path: string, parameters: Parameters = {}): string {
  const given = Object.entries(parameters).flatMap(([name, value]) =>
    value === null || value === undefined || value === '' ? [] : [[name, String(value)]],
  )
  return `${BASE}${path}${given.length === 0 ? '' : `?${new URLSearchParams(given)}`}`
}

export type Parameters = Readonly<Record<string, string | number | boolean | null | undefined>>

const MOVED = 'latchkey-moved'

/** Goes to another view. @param address of `addressOf`; @param replacing leaves nothing to go back to */
export function navigate(address: string, replacing = false): void {
  window.history[replacing ? 'replaceState' : 'pushState'](null, '', address)
  window.dispatchEvent(new Event(MOVED))
}

/** Changes parameters of this view: a filter, a page, the environment. */
export function setParameters(changed: Parameters, replacing = false): void {
  const { path, parameters } = placeNow()
  navigate(addressOf(path, { ...Object.fromEntries(parameters), ...changed }), replacing)
}

export function usePlace(): Place {
  const [place, setPlace] = useState(placeNow)
  useEffect(() => {
    const moved = (): void => setPlace(placeNow())
    window.addEventListener('popstate', moved)
    window.addEventListener(MOVED, moved)
    return () => {
      window.removeEventListener('popstate', moved)
      window.removeEventListener(MOVED, moved)
    }
  }, [])
  return place
}

/** The ids in a path, such as `{ customerId }` by `/customers/:customerId`; null if the path is another one. */
export function idsIn(pattern: string, path: string): Readonly<Record<string, string>> | null {
  const [names, parts] = [pattern.split('/'), path.split('/')]
  if (names.length !== parts.length) return null
  const ids: Record<string, string> = {}
  for (const [index, name] of names.entries()) {
    const part = parts[index] ?? ''
    if (!name.startsWith(':')) {
      if (name !== part) return null
      continue
    }
    try {
      ids[name.slice(1)] = decodeURIComponent(part)
    } catch {
      return null
    }
  }
  return ids
}

interface LinkProps {
  readonly class?: string
  readonly title?: string
  readonly 'aria-current'?: 'page'
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
