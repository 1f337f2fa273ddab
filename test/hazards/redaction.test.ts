import { expect, it } from 'vitest'
import { createLogger } from '../../src/log.js'

const UNTOLD = 'whsec_never_to_be_told'

function loggedAs(record: object): string {
  let written = ''
  const write = (line: string) => {
    written += line
  }
  createLogger('info', { write }).info(record, 'said')
  return written
}

it.each(['secret', 'secrets', 'key', 'apiKey', 'botToken', 'authorization', 'signature', 'body', 'email'])(
  'what is logged by mistake as %s is left out, within other things too',
  (name) => {
    for (const record of [
      { [name]: UNTOLD },
      { [name]: [UNTOLD] },
      { told: { [name]: UNTOLD } },
      { a: { b: { [name]: { c: UNTOLD } } } },
    ]) {
      const written = loggedAs(record)
      expect(written).not.toContain(UNTOLD)
      expect(written).toContain('[redacted]')
      expect(JSON.parse(written)).toMatchObject({ name: 'latchkey', msg: 'said' })
    }
  },
)
