import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo, Server } from 'node:net'

/** Serves on a free port, and tells the process that started this one which. Ends with it. */
export function serveAndAnnounce(listener: RequestListener): void {
  announce(createServer(listener))
}

/** The same for any server. */
export function announce(server: Server): void {
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
  process.on('disconnect', () => process.exit())
}
