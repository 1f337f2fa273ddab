import { expect, it } from 'vitest'
import { withTimeLimit } from '../../../src/sync/outbound/message.js'

const never = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
  })

it('answers what the work answers', async () => {
  expect(await withTimeLimit(60_000, new AbortController().signal, async () => 'done')).toBe('done')
})

it('calls the work off once its time is over', async () => {
  await expect(withTimeLimit(5, new AbortController().signal, never)).rejects.toMatchObject({
    name: 'TimeoutError',
  })
})

it('calls the work off when it is told to, also before it has begun', async () => {
  const stopping = new AbortController()
  const working = withTimeLimit(60_000, stopping.signal, never)
  stopping.abort(new Error('It stops.'))
  await expect(working).rejects.toThrow('It stops.')
  await expect(withTimeLimit(60_000, stopping.signal, async () => 'done')).rejects.toThrow('It stops.')
})
