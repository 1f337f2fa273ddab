/** Milliseconds. */
export interface BackOff {
  readonly first: number
  readonly most: number
}

/** No wait is shorter, however the dice fall: a failing call is never repeated at once. */
const LEAST_MS = 100

/**
 * How long to wait after the nth failure in a row, in milliseconds: at random up to a bound that doubles each time,
 * so that what failed together is not tried together.
 * @param random from 0 up to 1
 */
export function backOffMs(failures: number, { first, most }: BackOff, random: number): number {
  const bound = Math.min(most, first * 2 ** (failures - 1))
  return Math.max(LEAST_MS, Math.round(bound * random))
}
