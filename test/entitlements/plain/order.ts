interface Dated {
  readonly id: string
  readonly createdAt: number
}

/** By `createdAt`, then id: what "earliest" and "newest" mean wherever the walk plays no part. */
export function byTime(one: Dated, other: Dated): number {
  return one.createdAt - other.createdAt || byText(one.id, other.id)
}

export function byText(one: string, other: string): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}
