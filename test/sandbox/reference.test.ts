import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ROOT } from '../world.js'
import { referencePage } from './reference.js'

it('is all in docs/sandbox-reference.md', async () => {
  await expect(referencePage()).toMatchFileSnapshot(join(ROOT, 'docs', 'sandbox-reference.md'))
})
