import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Below the ports that systems give to connections, and to listeners that ask for any port: such a one could be taken
 * by another test before the caller listens on it.
 */
const [FIRST, COUNT] = [10_000, 20_000]

/** A port that nobody listens on. */
export async function freePort(): Promise<number> {
  const port = FIRST + Math.floor(Math.random() * COUNT)
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return freePort()
    throw error
  }
  server.close()
  await once(server, 'close')
  return port
}
