// An Express app that sells reports. It takes deliveries in by itself, and shows a 402 to those who have not paid.
// Run `npx latchkey init` once, name the feature in config.json ("products": { "pro_1": { "features": ["reports"] } }),
// and start it with the key in LATCHKEY_API_KEY.
import express from 'express'
import { createReceiver, startDaemon } from 'latchkey'

const latchkey = await startDaemon({ config: 'config.json' })
const app = express()

// Before any body parser: the signature covers the exact bytes.
app.use('/webhooks', createReceiver(latchkey))

/** Lets those pass who may use the feature. A daemon that cannot say so ends in a 503: that is not "not paid". */
function requireFeature(feature) {
  return async (req, res, next) => {
    // A real shop takes the customer from its session: here anybody may claim to be anybody.
    const customerId = encodeURIComponent(req.query.customer ?? '')
    const answer = await fetch(`${latchkey.url}/entitlements/${customerId}/features/${feature}`, {
      headers: { Authorization: `Bearer ${process.env.LATCHKEY_API_KEY}` },
      signal: AbortSignal.timeout(2_000),
    }).catch(() => null)
    if (!answer?.ok) return res.status(503).send('Please try again in a moment.\n')
    const { active } = await answer.json()
    return active ? next() : res.status(402).send('Reports are part of Gold: buy it at /buy.\n')
  }
}

app.get('/reports', requireFeature('reports'), (_req, res) => res.send('The report of the month.\n'))
app.get('/buy', (_req, res) => res.send('Here is the checkout of the payments service.\n'))

const server = app.listen(process.env.PORT ?? 3000, () => console.log('the shop is open'))
process.once('SIGTERM', () => server.close(() => latchkey.close()))
