import { expect, it } from 'vitest'
import { cli } from './run-cli.js'
import { configWith } from './stored-events.js'

it('replay says where its filter can not have been meant so', async () => {
  const config = await configWith()
  const refused = await cli(['replay', '--dry-run', '--endpoint', 'liv', '--config', config])
  expect(refused).toEqual({
    exitCode: 2,
    out: '',
    err: 'error: The body is not valid.\n  filter.endpoint: is none of live, manual, and nothing came through it\n',
  })
})
