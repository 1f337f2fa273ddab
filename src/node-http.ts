import type * as Http from 'node:http'
import { createRequire } from 'node:module'

/**
 * HTTP, as Node has it. An import reads everything that a module exports, and for the WebSocket of this one Node would
 * load a second HTTP client: 3 MB, and some 40 ms of each start.
 */
export const http = createRequire(import.meta.url)('node:http') as typeof Http
