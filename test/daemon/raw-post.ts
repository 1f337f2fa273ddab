import { type IncomingHttpHeaders, request } from 'node:http'
import { buffer } from 'node:stream/consumers'

/** Header lines as they go over the wire: a name may come twice, and a value may be empty. */
export type HeaderLines = readonly (readonly [name: string, value: string])[]

export interface RawAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** Posts exactly these header lines and bytes, and adds nothing but what HTTP itself needs. */
export function rawPost(url: string, lines: HeaderLines, body: string | Buffer = ''): Promise<RawAnswer> {
  const { hostname, port, pathname } = new URL(url)
  const length = String(Buffer.byteLength(body))
  const headers = [['Host', 'latchkey'], ['Connection', 'close'], ['Content-Length', length], ...lines].flat()
  return new Promise((resolve, reject) => {
    const req = request({ hostname, port, path: pathname, method: 'POST', headers }, async (res) => {
      const text = (await buffer(res)).toString()
      resolve({ status: res.statusCode ?? 0, headers: res.headers, text })
    })
    req.on('error', reject).end(body)
  })
}
