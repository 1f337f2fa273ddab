import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import { LatchkeyError } from '../errors.js'
import { readBody } from './body.js'
import type { JoinLinksDeps } from './join-links.js'
import { requireMethod } from './raw-route.js'
import type { RawHandler } from './route.js'
import { sendJson } from './send.js'

export const TELEGRAM_UPDATES_PATH = '/platforms/telegram/updates'

/** Far above a message of the longest text that there is. */
const MAX_UPDATE_BYTES = 256 * 1024
const SECRET_HEADER = 'x-telegram-bot-api-secret-token'
/** Anybody may send what is refused: nobody can fill a disk from outside. */
const TELL_EVERY_MS = 60_000
const REFUSED_HINT =
  'not from Telegram, or a proxy dropped the header, or another program set the webhook of this bot: see `latchkey sync check`'

export interface TelegramUpdatesDeps extends Pick<JoinLinksDeps, 'messenger'> {
  readonly clientAddress: (req: IncomingMessage) => string
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
}

/** POST /platforms/telegram/updates: one update, delivered by Telegram. Another answer than 200 has it sent again. */
export function postTelegramUpdate(deps: TelegramUpdatesDeps): RawHandler {
  const { messenger } = deps
  const tellOfRefused = createTellOfRefused(deps)

  return async (req, res) => {
    const updates = messenger()?.updates ?? null
    if (updates === null) throw new LatchkeyError('route_not_found', 'Updates are not delivered here.')
    requireMethod(req, res, 'POST')
    if (!isProved(req, updates.secret)) {
      tellOfRefused(req)
      throw new LatchkeyError(
        'unauthorized',
        'The update does not carry the secret of sync.telegram.updates.',
      )
    }
    await updates.handle(parse(await readBody(req, MAX_UPDATE_BYTES)))
    sendJson(res, 200, {})
  }
}

function createTellOfRefused({ clientAddress, clock, log }: Omit<TelegramUpdatesDeps, 'messenger'>) {
  let refused = 0
  let toldAt = Number.NEGATIVE_INFINITY

  return (req: IncomingMessage): void => {
    refused += 1
    if (clock() - toldAt < TELL_EVERY_MS) return
    log.warn(
      { refused, address: clientAddress(req), hint: REFUSED_HINT },
      'a Telegram update was refused: its secret token is missing or wrong',
    )
    refused = 0
    toldAt = clock()
  }
}

/** Compares hashes, in constant time, so that the time tells nothing about the secret or its length. */
function isProved(req: IncomingMessage, secret: string): boolean {
  const [sent = '', ...others] = req.headersDistinct[SECRET_HEADER] ?? []
  return others.length === 0 && timingSafeEqual(sha256(sent), sha256(secret))
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text, 'latin1').digest()
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    const issues = [{ path: '', message: 'is not JSON' }]
    throw new LatchkeyError('invalid_request', 'The body is not valid.', { issues })
  }
}
