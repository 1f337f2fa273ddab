/**
 * Writes items one lot at a time: what comes while a write is under way goes together into the next one. Resolves, or
 * rejects, as the write does that the item went into.
 */
export function createGathering<Item>(
  write: (items: readonly Item[]) => Promise<void>,
): (item: Item) => Promise<void> {
  let waiting: Item[] = []
  let next: Promise<void> | null = null
  let last: Promise<void> = Promise.resolve()

  async function writeAfter(before: Promise<void>): Promise<void> {
    // Whoever waits for that one is told how it ended.
    await before.catch(() => {})
    const items = waiting
    waiting = []
    next = null
    await write(items)
  }

  return (item) => {
    waiting.push(item)
    if (next === null) {
      next = writeAfter(last)
      last = next
    }
    return next
  }
}
