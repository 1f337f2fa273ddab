/* Whole days in UTC, as the counts of the API have them. */

import { now } from '../now.js'

export const DAY_MS = 86_400_000

/** Such as `2026-11-25`. @param ago how many days before today */
export const day = (ago = 0): string => dayOf(now() - ago * DAY_MS)

export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

/** The instant that a day ends at; what is no day stays as it is, so that the API says so. */
export function endOf(text: string): string {
  const end = new Date(Date.parse(text) + DAY_MS)
  return Number.isNaN(end.getTime()) ? text : end.toISOString()
}

/** The instant that a day begins at, likewise. */
export function beginOf(text: string): string {
  const begin = new Date(Date.parse(text))
  return Number.isNaN(begin.getTime()) ? text : begin.toISOString()
}
