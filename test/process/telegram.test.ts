import { expect, it, vi } from 'vitest'
import { BOT_TOKEN, startTelegram } from '../platforms/telegram-server.js'
import { CONFIG, configuredFolder, serve } from './served.js'

it('the daemon ends in order while Telegram is polled, and has shown the token nowhere', async () => {
  const telegram = await startTelegram()
  telegram.addGroup(-1001234567890).askToJoin(4_200_001)
  const targets = [{ adapter: 'telegram', groupId: '-1001234567890' }]
  const folder = configuredFolder({
    ...CONFIG,
    products: { pro_gold: { targets } },
    sync: { telegram: { botToken: `\${env:TELEGRAM_BOT_TOKEN}`, apiUrl: telegram.url } },
    log: { level: 'trace' },
  })
  telegram.fail({ method: 'deleteWebhook', answer: 'close' })
  const env = { TELEGRAM_BOT_TOKEN: BOT_TOKEN, DEBUG: '*' }
  const daemon = await serve(folder, env)
  await vi.waitFor(() => expect(telegram.updates.waiting()).toEqual([]), { timeout: 10_000 })
  await vi.waitFor(() => expect(telegram.updates.isPolled()).toBe(true))
  daemon.signal('SIGTERM')
  const { code, stdout, stderr } = await daemon.exit
  expect(code).toBe(0)
  expect(stdout).toContain('Telegram updates are received again')
  expect(stdout + stderr).not.toContain(BOT_TOKEN.split(':')[1])
})
