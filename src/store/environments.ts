import type { Environment } from '../provider/event.js'

/** In the order in which keys sort. */
export const ENVIRONMENTS: readonly Environment[] = ['live', 'sandbox']
