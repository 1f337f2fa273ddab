/* Sees that no file leaves something behind that goes on asking, in the process that it shares with the files after it. */

import { afterAll, expect } from 'vitest'
import { leftAwaiting } from './eventually.js'

afterAll(() => {
  expect(leftAwaiting(), 'what `eventually` still asks for').toEqual([])
})
