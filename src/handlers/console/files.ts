/* The console's page, script and style, as `npm run console` builds them. */

import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { packageFile } from '../../package-file.js'
import { send } from '../send.js'

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
}

/** The name of a built file: with a hash of its content, which never changes under that name. */
const ASSET = /^[\w.-]+-[0-9a-f]{8,}\.(js|css|svg|txt)$/

interface Built {
  readonly content: Buffer
  readonly packed: Buffer
}

/** Reads each file once, when it is first asked for. */
export function createConsoleFiles() {
  const files = new Map<string, Promise<Built | null>>()

  function load(name: string): Promise<Built | null> {
    const known = files.get(name)
    if (known !== undefined) return known
    const loading = loadBuilt(name)
    files.set(name, loading)
    // Names that lead to no file would fill the memory.
    void loading.then((built) => built === null && files.delete(name))
    return loading
  }

  /** False if there is no such file. */
  async function sendFile(res: ServerResponse, name: string, cached: string): Promise<boolean> {
    const built = await load(name)
    if (built === null) return false
    const isPacked = takesGzip(res.req)
    const headers = {
      'Content-Type': TYPES[name.slice(name.lastIndexOf('.') + 1)],
      'Cache-Control': cached,
      Vary: 'Accept-Encoding',
      ...(isPacked && { 'Content-Encoding': 'gzip' }),
    }
    send(res, 200, headers, isPacked ? built.packed : built.content)
    return true
  }

  return {
    /** The page, which shows every address of the console. */
    sendPage: (res: ServerResponse) => sendFile(res, 'index.html', 'no-store'),
    /** @param name as the page names it */
    sendAsset: async (res: ServerResponse, name: string) =>
      ASSET.test(name) && sendFile(res, `assets/${name}`, 'public, max-age=31536000, immutable'),
  }
}

async function loadBuilt(name: string): Promise<Built | null> {
  const content = await readFile(packageFile(`console/${name}`)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  return content && { content, packed: await promisify(gzip)(content) }
}

function takesGzip({ headers }: IncomingMessage): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(headers['accept-encoding']?.toString() ?? '')
}
