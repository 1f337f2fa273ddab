/** Epoch milliseconds: the only place of the console that reads the clock. */
export const now = (): number => Date.now()
