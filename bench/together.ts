/** Something that must be stopped when the work is over. */
export interface Stoppable {
  stop(): Promise<void>
}

/** Lets the work start what it needs, and stops all of it in the end, the last first, whatever comes of the work. */
export async function together<T>(
  work: (use: <S extends Stoppable>(started: S) => S) => Promise<T>,
): Promise<T> {
  const started: Stoppable[] = []
  try {
    return await work((one) => {
      started.push(one)
      return one
    })
  } finally {
    for (const one of started.reverse()) await one.stop()
  }
}
