import { expect, it } from 'vitest'
import { signBody } from '../../src/provider/signature.js'
import { wireEvent } from '../daemon/wire-events.js'
import { head, openConnection } from '../handlers/raw-connection.js'
import { eventually } from '../setup/eventually.js'
import { CONFIG, configuredFolder, SECRET, serve } from '../world.js'

const MIB = 1024 * 1024
const SENDERS = 480
/** Just fewer than are refused. */
const PIECES = 2_000

function headersOf(body: string): Record<string, string> {
  const timestamp = String(Math.floor(Date.now() / 1000))
  return {
    'x-webhook-timestamp': timestamp,
    'x-webhook-signature': signBody(SECRET, timestamp, Buffer.from(body)),
  }
}

it('a million tiny pieces of bodies take little more memory than their bytes', async () => {
  const daemon = await serve(configuredFolder({ ...CONFIG, server: { port: 0, metrics: { port: 0 } } }))
  const metricsUrl = daemon.logged().find((line) => 'metricsUrl' in line)?.metricsUrl
  const measured = async (name: string): Promise<number> => {
    const text = await (await fetch(`${metricsUrl}/metrics`)).text()
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
  }
  const before = await measured('process_resident_memory_bytes')

  const senders = await Promise.all(Array.from({ length: SENDERS }, () => openConnection(daemon.url)))
  for (const sender of senders) {
    sender.send(head('POST /webhooks/live', { ...headersOf('another'), 'transfer-encoding': 'chunked' }))
    sender.send('1\r\na\r\n'.repeat(PIECES))
  }
  const held = await eventually(async () => {
    const bytes = await measured('latchkey_bodies_being_read_bytes')
    expect(bytes).toBeGreaterThanOrEqual(SENDERS * PIECES)
    return bytes
  })
  expect(held).toBeLessThan(2 * SENDERS * PIECES)
  // Kept piece by piece they took 400 MiB.
  expect((await measured('process_resident_memory_bytes')) - before).toBeLessThan(150 * MIB)

  const body = wireEvent('payment.authorized')
  const headers = headersOf(body)
  const delivered = await fetch(`${daemon.url}/webhooks/live`, { method: 'POST', headers, body })
  expect(delivered.status).toBe(200)
})
