import type { Call } from './calls.js'

export interface Bot {
  readonly id: number
  /** Without the @. */
  readonly username: string
}

/** Who the bot is, asked once. */
export function createBot(call: Call): () => Promise<Bot> {
  let known: Bot | null = null
  return async () => {
    known ??= await call((api) => api.getMe())
    return known
  }
}
