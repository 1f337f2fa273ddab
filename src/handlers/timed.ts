import { performance } from 'node:perf_hooks'
import type { RawHandler } from './raw-handler.js'

/** Measures a handler, failures included. `observe` gets seconds. */
export function timed<Param extends string>(
  handler: RawHandler<Param>,
  observe: (seconds: number) => void,
): RawHandler<Param> {
  return async (req, res, params) => {
    const startedAt = performance.now()
    try {
      await handler(req, res, params)
    } finally {
      observe((performance.now() - startedAt) / 1000)
    }
  }
}
