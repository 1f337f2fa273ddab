/** The smallest of the values, which are sorted, that `percent` of them do not exceed. */
export function percentile(sorted: ArrayLike<number>, percent: number): number {
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN
}

/** In no order. */
export function median(values: readonly number[]): number {
  return percentile(
    [...values].sort((a, b) => a - b),
    50,
  )
}
