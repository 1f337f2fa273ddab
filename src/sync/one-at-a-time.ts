/**
 * Runs work one at a time. Asked for while it runs, it runs once more: every answer is that of a run which began
 * after the question.
 */
export function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let next: Promise<void> | null = null
  let last: Promise<void> = Promise.resolve()

  async function runAfter(before: Promise<void>): Promise<void> {
    // Whoever asked for that one is told how it ended.
    await before.catch(() => {})
    next = null
    await work()
  }

  return () => {
    if (next === null) {
      next = runAfter(last)
      last = next
    }
    return next
  }
}
