import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** The free port where it listens from now on; by default until the test has ended. */
export async function portOf(
  server: Server,
  host = '127.0.0.1',
  atEnd: (end: () => void) => void = onTestFinished,
): Promise<number> {
  server.listen(0, host)
  await once(server, 'listening')
  atEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}
