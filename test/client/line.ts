import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** A connection between an app and a daemon that breaks, and holds back what is on its way, as told. */
export interface Line {
  readonly url: string
  /** Where it leads from the next connection on. */
  readonly leadTo: (url: string) => void
  /** Breaks all connections, and takes no new ones until `mend`. */
  readonly cut: () => void
  readonly mend: () => void
  readonly freeze: () => void
  readonly thaw: () => void
}

export async function openLine(url: string): Promise<Line> {
  let target = new URL(url)
  let isCut = false
  let isFrozen = false
  const ends = new Set<Socket>()
  const server = createServer((near) => {
    if (isCut) {
      near.destroy()
      return
    }
    const far = connect(Number(target.port), target.hostname)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      ends.add(from)
      from.on('data', (bytes) => void to.write(bytes))
      from.on('end', () => void to.end())
      from.on('error', () => {})
      from.on('close', () => {
        ends.delete(from)
        to.destroy()
      })
      if (isFrozen) from.pause()
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const breakAll = (): void => {
    for (const end of ends) end.destroy()
  }
  onTestFinished(() => {
    breakAll()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    leadTo: (next) => {
      target = new URL(next)
    },
    cut: () => {
      isCut = true
      breakAll()
    },
    mend: () => {
      isCut = false
    },
    freeze: () => {
      isFrozen = true
      for (const end of ends) end.pause()
    },
    thaw: () => {
      isFrozen = false
      for (const end of ends) end.resume()
    },
  }
}
