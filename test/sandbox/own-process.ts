/* A sandbox in a process of its own, which a test can kill: `own-process.ts <file>` prints its address. */

import { startSandbox } from '../../src/sandbox/sandbox.js'

const [file = ''] = process.argv.slice(2)
const { url } = await startSandbox({
  file,
  seed: 7,
  from: '2026-01-01T00:00:00.000Z',
  key: 'sk_sandbox_test',
})
process.stdout.write(`${url}\n`)
