import { expect, it } from 'vitest'
import { cli } from './run-cli.js'
import { configWith } from './stored-events.js'

it('replay says where its filter can not have been meant so', async () => {
  const config = await configWith()
  const refused = await cli(['replay', '--dry-run', '--endpoint', 'liv', '--config', config])
  expect(refused).toEqual({
    exitCode: 2,
    out: '',
    err: 'error: the endpoint "liv" is none of live, manual, and nothing came through it\n',
  })
  const noted = await cli(['replay', '--dry-run', '--type', 'payment.refundd', '--config', config])
  expect(noted.exitCode).toBe(0)
  expect(noted.out).toMatch(/^0 read again/)
  expect(noted.err).toBe(
    'note: no event of the type "payment.refundd" is stored; did you mean payment.refunded?\n',
  )
})
