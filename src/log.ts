import { type DestinationStream, type Logger, pino } from 'pino'
import { isExplained } from './errors.js'

/** Whatever is logged by mistake under these names is left out: keys, secrets, and what identifies a person. */
const NEVER_LOGGED = [
  'secret',
  'secrets',
  'key',
  'apiKey',
  'botToken',
  'authorization',
  'signature',
  'body',
  'email',
]

export function createLogger(level: string, destination?: DestinationStream): Logger {
  const paths = NEVER_LOGGED.flatMap((name) => [name, `*.${name}`, `*.*.${name}`])
  const options = {
    level,
    base: { name: 'latchkey' },
    redact: { paths, censor: '[redacted]' },
    serializers: { err: errorFields },
  }
  return destination === undefined ? pino(options) : pino(options, destination)
}

/** A stack only where the message does not say it all. */
function errorFields(error: Error): object {
  const fields = pino.stdSerializers.err(error)
  if (!isExplained(error)) return fields
  const { stack: _, ...explained } = fields
  return explained
}
